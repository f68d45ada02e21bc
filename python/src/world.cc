// init, ranks as threads, Ctrl-C.
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

// Rethrows the exception being handled, with the text that the other ranks get.
[[noreturn]] void rethrow_in_short() {
  try {
    throw;
  } catch (const nb::python_error& error) {
    const nb::object summary =
        nb::module_::import_("hocket._jobs.ending").attr("summary_of")(error.value());
    throw std::runtime_error(nb::cast<std::string>(summary));
  }
}

// Calls `body(comm)` in `size` threads; the first error is raised when all have ended.
void run_threads(nb::handle size, nb::object body) {
  const int count = integer_argument(size, "size");
  std::mutex mutex;
  std::exception_ptr first;
  const auto rank = [&](Communicator& comm) {
    const nb::gil_scoped_acquire acquire;
    try {
      body(CommunicatorObject{Communicator(comm.impl())});
    } catch (...) {
      // Python ends threads that want the GIL after the interpreter's end, by unwinding (see
      // GilGivenAway). A rank left behind in this state sleeps until the process has gone.
      while (Py_IsInitialized() == 0) ::pause();
      {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      rethrow_in_short();
    }
  };
  try {
    const InitOptions options{.library_folders = library_folders()};
    without_gil([&] { hocket::run_threads(count, rank, options); });
  } catch (...) {
    if (first) std::rethrow_exception(first);
    throw;
  }
}

// Python's main thread. It is set at import, as the first thread that asks may be a pool's worker.
std::atomic<pthread_t>& main_thread() {
  static std::atomic<pthread_t> thread{};
  return thread;
}

// Number of reasons for which this thread's waits must not check for signals.
int& left_alone() noexcept {
  static thread_local int count = 0;
  return count;
}

// Called without the GIL in a waiting thread. An exception of a signal's handler stays set in the
// thread until the call has ended; then Python gets it.
bool is_interrupted() {
  if (Py_IsInitialized() == 0) return false;  // the process ends, and Python has
  // Python's signals arrive in its main thread alone.
  if (pthread_equal(main_thread().load(std::memory_order_relaxed), pthread_self()) == 0) {
    return false;
  }
  if (left_alone() != 0) return false;
  const nb::gil_scoped_acquire acquire;
  return PyErr_Occurred() != nullptr || PyErr_CheckSignals() != 0;
}

// The function that describes a Python thread's place; null: none. Never released, as a thread may
// be about to call it.
std::atomic<PyObject*>& describes_place() noexcept {
  static std::atomic<PyObject*> function{nullptr};
  return function;
}

// Number of threads that describe a place, or wait for the GIL to do so.
std::atomic<int>& telling() noexcept {
  static std::atomic<int> count{0};
  return count;
}
struct Tells {
  Tells() noexcept { ++telling(); }
  ~Tells() { --telling(); }
};

// Asked in a thread that is there for that alone, and that waits for the GIL as long as need be.
std::string tell_place(std::uint64_t thread) {
  if (Py_IsInitialized() == 0) return {};
  const Tells tells;
  const GilTaken gil;
  PyObject* const describes = describes_place();
  if (describes == nullptr) return {};
  try {
    return nb::cast<std::string>(nb::handle(describes)(thread));
  } catch (const std::exception&) {  // a frame that cannot be described, a program without memory
    return {};
  }
}

void tell_places(nb::object describes) {
  PyObject* const function = describes.is_none() ? nullptr : describes.release().ptr();
  describes_place() = function;
  set_place_teller(function == nullptr ? nullptr : tell_place);
  if (function != nullptr) return;
  // As Python ends: it aborts the process where a thread gives the GIL back later.
  without_gil([] {
    for (int i = 0; i < 1000 && telling() != 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
}

}  // namespace

namespace {

// True once Python has called its `atexit` handlers.
std::atomic<bool>& ends() noexcept {
  static std::atomic<bool> does{false};
  return does;
}

}  // namespace

// Before its `atexit` handlers, Python drops the exception that ended the program: the frames of a
// SystemExit and their objects. No Python code runs then.
bool is_ending() {
  if (ends()) return true;
  const bool is_main =
      pthread_equal(main_thread().load(std::memory_order_relaxed), pthread_self()) != 0;
  return is_main && PyEval_GetFrame() == nullptr;
}

SignalsLeftAlone::SignalsLeftAlone() noexcept { ++left_alone(); }
SignalsLeftAlone::~SignalsLeftAlone() { --left_alone(); }

namespace {

// True if the exception being handled says that another rank's user interrupted it.
bool is_of_an_interrupt() noexcept {
  if (!std::current_exception()) return false;
  try {
    throw;
  } catch (const Error& error) {
    return std::string_view(error.what()).find("interrupted") != std::string_view::npos;
  } catch (...) {
    return false;
  }
}

}  // namespace

void throw_if_signalled() {
  constexpr int kLooks = 50;
  constexpr std::chrono::milliseconds kBetweenLooks{1};
  if (PyErr_Occurred() != nullptr || PyErr_CheckSignals() != 0) throw nb::python_error();
  const bool is_main =
      pthread_equal(main_thread().load(std::memory_order_relaxed), pthread_self()) != 0;
  if (!is_main || !is_of_an_interrupt()) return;
  // A launcher passes Ctrl-C on to one rank after the other: the first one's Aborted may be
  // quicker.
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
  module.def("_tell_places", &tell_places, arg("describes").none());
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
  module.def("_begin_end", [] { ends() = true; }, nb::sig("def _begin_end() -> None"));
  module.def(
      "_finish_calls",
      [] { return without_gil([] { return finish_calls(); }); },
      nb::sig("def _finish_calls() -> bool"));
  module.def(
      "_check_stream",
      [](nb::handle stream) { stream_argument(stream); },
      arg("stream").none(),
      nb::sig("def _check_stream(stream: Stream) -> None"),
      "Raises where it is no stream; for calls of several parts, whose last ones have it.");
  module.def("_run_threads",
             &run_threads,
             arg("size"),
             arg("body"),
             nb::sig("def _run_threads(size: int, body: Callable[[Communicator], None]) -> None"));
}

}  // namespace hocket::python
