// Binds init, ranks as threads, Ctrl-C, and the end of Python.
#include <nanobind/stl/string.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "bootstrap.h"
#include "communicator_object.h"
#include "device.h"
#include "hocket/error.h"
#include "hocket/exit.h"
#include "hocket/interrupt.h"
#include "hocket/live.h"
#include "hocket/machine.h"
#include "hocket/run_clock.h"
#include "hocket/store.h"

namespace hocket::python {

Key key_argument(nb::handle key) {
  if (PyBytes_Check(key.ptr())) {
    const auto bytes = nb::borrow<nb::bytes>(key);
    if (bytes.size() != Key::kBytes) {
      throw InvalidArgument("key has " + std::to_string(bytes.size()) +
                            " bytes, expected 32; `hocket key FILE` makes a key file, whose name "
                            "can be given instead");
    }
    return Key(Key::View(static_cast<const std::byte*>(bytes.data()), Key::kBytes));
  }
  return Key::from_file(path_argument(key, "key"));
}

namespace {

InitOptions init_options(nb::handle rank,
                         nb::handle size,
                         nb::handle address,
                         nb::handle key,
                         nb::handle timeout,
                         nb::handle deadline,
                         nb::handle engines,
                         nb::handle name,
                         nb::handle join) {
  InitOptions options;
  if (!rank.is_none()) options.rank = integer_argument(rank, "rank");
  if (!size.is_none()) options.size = integer_argument(size, "size");
  if (!address.is_none()) options.address = text_argument(address, "address");
  if (!key.is_none()) options.key = key_argument(key);
  options.timeout = limit_argument(timeout, "timeout");
  options.deadline = limit_argument(deadline, "deadline");
  options.library_folders = library_folders();
  options.engines = engines_argument(engines);
  options.name = text_argument(name, "name");
  if (!join.is_none()) options.join = text_argument(join, "join");
  return options;
}

CommunicatorObject init(nb::handle rank,
                        nb::handle size,
                        nb::handle address,
                        nb::handle key,
                        nb::handle timeout,
                        nb::handle deadline,
                        nb::handle engines,
                        nb::handle bootstrap,
                        nb::handle mpi,
                        nb::handle name,
                        nb::handle join) {
  const std::unique_ptr<Bootstrap> group = bootstrap_argument(bootstrap, mpi);
  const InitOptions options = read_joining(group.get(), [&] {
    return init_options(rank, size, address, key, timeout, deadline, engines, name, join);
  });
  auto world = without_gil([&] {
    return std::make_shared<World>(group ? hocket::init(*group, options) : hocket::init(options));
  });
  Communicator comm(world->communicator().impl());
  nb::module_::import_("hocket._jobs.ending").attr("prepare")();
  return {std::move(comm), std::move(world)};
}

// Rethrows the exception being handled. A Python error gets the short text that the other ranks
// see.
[[noreturn]] void rethrow_in_short() {
  try {
    throw;
  } catch (const nb::python_error& error) {
    const nb::object summary =
        nb::module_::import_("hocket._jobs.ending").attr("summary_of")(error.value());
    throw std::runtime_error(nb::cast<std::string>(summary));
  }
}

// Calls `body(comm)` in `size` threads. When all have ended, the first error is raised.
void run_threads(nb::handle size, nb::object body) {
  const int count = integer_argument(size, "size");
  std::mutex mutex;
  std::exception_ptr first;
  const auto body_of_rank = [&](Communicator& comm) {
    try {
      body(CommunicatorObject{Communicator(comm.impl())});
    } catch (const abi::__forced_unwind&) {
      throw;
    } catch (...) {
      {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      rethrow_in_short();
    }
  };
  const auto rank = [&](Communicator& comm) { with_gil([&] { body_of_rank(comm); }); };
  try {
    const InitOptions options{.library_folders = library_folders()};
    without_gil([&] { hocket::run_threads(count, rank, options); });
  } catch (...) {
    if (first) std::rethrow_exception(first);
    throw;
  }
}

// Returns Python's main thread. It is set at import, because the first thread that asks for it may
// be a worker of a pool.
std::atomic<pthread_t>& main_thread() {
  static std::atomic<pthread_t> thread{};
  return thread;
}

bool is_main_thread() noexcept {
  return pthread_equal(main_thread().load(std::memory_order_relaxed), pthread_self()) != 0;
}

// Returns this thread's number of living SignalsLeftAlone objects. Its waits check for signals only
// if the number is 0.
int& left_alone() noexcept {
  static thread_local int count = 0;
  return count;
}

// Tells a wait whether it must end because of a signal. It is called without the GIL in the waiting
// thread. An exception of a signal's handler stays set in the thread until the call has ended; then
// Python raises it.
bool is_interrupted() {
  if (Py_IsInitialized() == 0) return false;  // Python has ended, and the process is ending
  // Python's signals arrive in its main thread alone.
  if (!is_main_thread() || left_alone() != 0) return false;
  const nb::gil_scoped_acquire acquire;
  return PyErr_Occurred() != nullptr || PyErr_CheckSignals() != 0;
}

// Returns the Python function that describes where a thread is. It is never released, because a
// thread may be about to call it.
std::atomic<PyObject*>& describes_place() noexcept {
  static std::atomic<PyObject*> function{nullptr};
  return function;
}

// Returns a text that says where a Python thread is. It runs in a thread of hocket's own, because
// it may wait long for the GIL.
std::string tell_place(std::uint64_t thread) {
  const Callback callback;
  if (!callback.may_run()) return {};
  return with_gil([thread] {
    try {
      return nb::cast<std::string>(nb::handle(describes_place())(thread));
    } catch (const std::exception&) {  // for example, memory is exhausted
      return std::string();
    }
  });
}

void tell_places(nb::object describes) {
  describes_place() = describes.release().ptr();
  set_place_teller(tell_place);
}

// Returns true once Python has called its `atexit` handlers.
std::atomic<bool>& ends() noexcept {
  static std::atomic<bool> does{false};
  return does;
}

}  // namespace

// Returns true from the end of the main program on. If an exception ended the program, Python drops
// its frames and their objects even before it calls `atexit` handlers. No Python code runs at that
// time, so the main thread has no frame.
bool is_ending() {
  if (ends()) return true;
  return is_main_thread() && PyEval_GetFrame() == nullptr;
}

namespace {

// Returns the number of callbacks that run, or are about to run.
std::atomic<int>& callbacks() noexcept {
  static std::atomic<int> count{0};
  return count;
}

}  // namespace

// A callback first counts itself, and then looks whether Python ends. finish_callbacks first marks
// Python as ending, and then looks at the count. So at least one of the two sees the other.
Callback::Callback() noexcept { ++callbacks(); }
Callback::~Callback() { --callbacks(); }

bool Callback::may_run() const noexcept { return !ends() || is_main_thread(); }

// Waits at most 5 s. A callback that takes longer sleeps as soon as it asks for the GIL.
void finish_callbacks() {
  constexpr std::chrono::seconds kPatience{5};
  constexpr std::chrono::milliseconds kBetweenLooks{2};
  ends() = true;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  without_gil([&] {
    while (callbacks() > 0 && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(kBetweenLooks);
    }
  });
}

SignalsLeftAlone::SignalsLeftAlone() noexcept { ++left_alone(); }
SignalsLeftAlone::~SignalsLeftAlone() { --left_alone(); }

namespace {

// Returns true if the exception being handled may come from Ctrl-C on another rank. There Ctrl-C
// interrupts a wait, or ends a program that still has pending calls.
bool is_of_an_interrupt() noexcept {
  if (!std::current_exception()) return false;
  try {
    throw;
  } catch (const Error& error) {
    const std::string_view what = error.what();
    return what.find("interrupted") != what.npos || what.find("Work was destroyed") != what.npos;
  } catch (...) {
    return false;
  }
}

}  // namespace

void throw_if_signalled() {
  constexpr int kLooks = 50;
  constexpr std::chrono::milliseconds kBetweenLooks{1};
  if (PyErr_Occurred() != nullptr || PyErr_CheckSignals() != 0) throw nb::python_error();
  if (!is_main_thread() || !is_of_an_interrupt()) return;
  // A launcher passes Ctrl-C to one rank after the other. So the first rank's Aborted may arrive
  // before this rank's own signal, for which this waits up to 50 ms.
  for (int look = 0; look < kLooks; ++look) {
    {
      const nb::gil_scoped_release release;
      std::this_thread::sleep_for(kBetweenLooks);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

std::vector<std::string> library_folders() {
  const std::vector<std::string> packages = package_library_folders();
  std::vector<std::string> folders;
  for (nb::handle entry : nb::module_::import_("sys").attr("path")) {
    if (!nb::isinstance<nb::str>(entry)) continue;
    const std::string path = path_argument(entry, "an entry of sys.path");
    for (const std::string& package : packages) {
      std::string folder = path + "/" + package;
      std::error_code ignored;
      if (std::filesystem::is_directory(folder, ignored)) folders.push_back(std::move(folder));
    }
  }
  return folders;
}

void bind_world(nb::module_& module) {
  using nb::arg;
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  main_thread() = static_cast<pthread_t>(nb::cast<unsigned long>(main.attr("ident")));
  set_interrupt_check(is_interrupted);
  // The callbacks run in threads of the parent, which a forked child does not have.
  ::pthread_atfork(nullptr, nullptr, [] { callbacks() = 0; });
  module.def("_tell_places", &tell_places, arg("describes"));
  module.def(
      "_run_time",
      [] { return std::chrono::duration<double>(RunClock::now().time_since_epoch()).count(); },
      nb::sig("def _run_time() -> float"),
      "Seconds in which this process could run, as deadlines count them.");

  module.def("init",
             &init,
             arg("rank") = nb::none(),
             arg("size") = nb::none(),
             arg("address") = nb::none(),
             arg("key") = nb::none(),
             arg("timeout") = nb::none(),
             arg("deadline") = nb::none(),
             arg("engines") = nb::none(),
             arg("bootstrap") = nb::none(),
             arg("mpi") = nb::none(),
             arg("name").none() = "world",
             arg("join") = nb::none(),
             nb::sig("def init(rank: Optional[int] = None, size: Optional[int] = None, "
                     "address: Optional[str] = None, "
                     "key: Optional[Union[bytes, str, PathLike[str]]] = None, "
                     "timeout: Timeout = None, deadline: Timeout = None, "
                     "engines: Optional[Iterable[str]] = None, "
                     "bootstrap: Optional[Bootstrap] = None, mpi: Any = None, "
                     "name: str = 'world', join: Optional[str] = None) -> Communicator"),
             "Use it through `hocket.init`.");
  module.def(
      "_tell_end",
      [](nb::handle why) {
        const std::string text = words_argument(why, "why");
        if (!text.empty()) tell_end(text);
      },
      arg("why"),
      nb::sig("def _tell_end(why: str) -> None"));
  module.def(
      "_tell_trouble",
      [](nb::handle what) { tell_trouble(words_argument(what, "what")); },
      arg("what"),
      nb::sig("def _tell_trouble(what: str) -> None"));
  module.def("_begin_end", &finish_callbacks, nb::sig("def _begin_end() -> None"));
  module.def(
      "_finish_calls",
      [] { return without_gil([] { return finish_calls(); }); },
      nb::sig("def _finish_calls() -> bool"));
  module.def(
      "_check_stream",
      [](nb::handle stream) { stream_argument(stream); },
      arg("stream").none(),
      nb::sig("def _check_stream(stream: Stream) -> None"),
      "Raise an error if `stream` is no stream. For calls that use it only in their last part.");
  module.def("_run_threads",
             &run_threads,
             arg("size"),
             arg("body"),
             nb::sig("def _run_threads(size: int, body: Callable[[Communicator], None]) -> None"));
}

}  // namespace hocket::python
