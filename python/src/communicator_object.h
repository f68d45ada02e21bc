// Shared by the classes of the module: the communicator behind Python's, options, the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arguments.h"
#include "array.h"
#include "hocket/communicator.h"
#include "hocket/group.h"
#include "hocket/store.h"
#include "hocket/work.h"

namespace hocket::python {

// Releases the GIL for its lifetime. Before 3.14, Python ends a daemon thread that wants the GIL
// back after the interpreter's end. It does so by unwinding, which no destructor survives, so such
// a thread sleeps until the process has ended.
class GilGivenAway {
 public:
  GilGivenAway() noexcept : state_(PyEval_SaveThread()) {}
  ~GilGivenAway() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      for (;;) ::pause();
    }
  }
  GilGivenAway(const GilGivenAway&) = delete;
  GilGivenAway& operator=(const GilGivenAway&) = delete;

 private:
  PyThreadState* state_;
};

// Takes the GIL for as long as it lives, in a thread that Python may not know; where the
// interpreter ends, the same.
class GilTaken {
 public:
  GilTaken() {
    try {
      state_ = PyGILState_Ensure();
    } catch (...) {
      for (;;) ::pause();
    }
  }
  ~GilTaken() { PyGILState_Release(state_); }
  GilTaken(const GilTaken&) = delete;
  GilTaken& operator=(const GilTaken&) = delete;

 private:
  PyGILState_STATE state_;
};

// During its lifetime this thread's waits do not check for signals (see `set_interrupt_check`).
// Python handles them afterwards. For destructors, which cannot raise.
class SignalsLeftAlone {
 public:
  SignalsLeftAlone() noexcept;
  ~SignalsLeftAlone();
  SignalsLeftAlone(const SignalsLeftAlone&) = delete;
  SignalsLeftAlone& operator=(const SignalsLeftAlone&) = delete;
};

// True if objects are destroyed because the process is about to exit.
bool is_ending();

// Throws the exception of a signal's handler (Ctrl-C: KeyboardInterrupt), if there is one.
void throw_if_signalled();

// Runs a call that may wait, while other Python threads go on. An exception of a signal's handler
// takes precedence over the call's outcome. If the call fails, signals are checked once more:
// Ctrl-C goes to all ranks, and most ranks first see another rank's Aborted.
template <typename F>
decltype(auto) without_gil(F&& f) {
  const auto call = [&]() -> decltype(auto) {
    try {
      const GilGivenAway given;
      return std::forward<F>(f)();
    } catch (...) {
      throw_if_signalled();
      throw;
    }
  };
  // It may have ended well beside the signal.
  const auto look = [] {
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
  };
  if constexpr (std::is_void_v<decltype(f())>) {
    call();
    look();
  } else {
    decltype(auto) result = call();
    look();
    return result;
  }
}

// The same for work that ends in moments, or is abandoned. No signal interrupts it.
template <typename F>
decltype(auto) without_gil_or_signals(F&& f) {
  const SignalsLeftAlone left;
  const GilGivenAway given;
  return std::forward<F>(f)();
}

// A resource: a Work as Python holds it. The destructor of a pending one gives the call up. It
// waits for other threads at work on the communicator, without the GIL, which they may want.
class Started : public Work {
 public:
  Started() noexcept = default;
  Started(Work work) noexcept : Work(std::move(work)), has_ended_(false) {}
  Started(Started&& other) noexcept
      : Work(std::move(other)), has_ended_(std::exchange(other.has_ended_, true)) {}
  Started& operator=(Started&& other) noexcept {
    std::swap(static_cast<Work&>(*this), static_cast<Work&>(other));
    std::swap(has_ended_, other.has_ended_);
    return *this;
  }
  ~Started() {
    if (!has_ended_) without_gil_or_signals([this] { const Work last(std::move(*this)); });
  }

  // Called once the call is known to have ended. Its destructor then skips the wait.
  void has_ended() noexcept { has_ended_ = true; }
  bool is_known_ended() const noexcept { return has_ended_; }

 private:
  bool has_ended_ = true;
};

class OwnOperator;
class Watchers;

// Python's `Work`: the C++ one, and the objects that must outlive it.
struct WorkHandle {
  std::vector<nb::object> objects;  // the arrays of the call
  std::vector<std::shared_ptr<Lease>> leases;
  nb::object result;
  std::string call;                         // its name
  std::shared_ptr<OwnOperator> own = {};    // the user's operator; null: one of hocket's
  std::shared_ptr<Watchers> watchers = {};  // null: its end is awaited by `work` alone
  bool given_up = false;                    // by the destructor of its awaiter
  // For a call of objects: makes `result`, which is null before, when the call has ended well.
  std::function<nb::object()> make = {};
  Started work;  // last: destroyed first, and the arrays are unused after it
};

// Arrays of calls that streams of GPUs have not finished. Guarded by the GIL, or by the mutex in a
// Python without one. They are destroyed without either.
class HeldWork {
 public:
  bool is_empty() {
    const nb::ft_lock_guard lock(mutex_);
    return works_.empty();
  }
  std::deque<WorkHandle> take() {
    const nb::ft_lock_guard lock(mutex_);
    return std::exchange(works_, {});
  }
  // Keeps this order: before calls that came meanwhile.
  void put_back(std::deque<WorkHandle> works) {
    const nb::ft_lock_guard lock(mutex_);
    works_.insert(works_.begin(),
                  std::make_move_iterator(works.begin()),
                  std::make_move_iterator(works.end()));
  }
  void add(WorkHandle work) {
    const nb::ft_lock_guard lock(mutex_);
    works_.push_back(std::move(work));
  }

 private:
  nb::ft_mutex mutex_;
  std::deque<WorkHandle> works_;
};

// Python's `Communicator`: the C++ one and the world it came from, which it keeps alive.
struct CommunicatorObject {
  CommunicatorObject(Communicator communicator, std::shared_ptr<World> its_world = {})
      : comm(std::move(communicator)),
        world(std::move(its_world)),
        first_deadline(comm.deadline()) {}
  CommunicatorObject(CommunicatorObject&&) noexcept = default;
  // The destructor closes the communicator if this is its last object. The last
  // one of a world also leaves the job, which must not happen under the GIL.
  ~CommunicatorObject();

  Communicator comm;
  std::shared_ptr<World> world;  // null for ranks that are threads
  bool is_closed = false;        // here; for people
  Duration first_deadline;       // of calls, when it was made
  bool allows_pickle = false;    // in calls that do not say
  // Keeps arrays of calls on GPUs' streams until the streams have passed the calls.
  std::shared_ptr<HeldWork> held = std::make_shared<HeldWork>();
};

// Python's `SymmetricMemory`: the type of `comm.symmetric`.
struct Symmetric {
  CommunicatorObject self;
};

// The way to announce a refused call.
using Refuse = void (*)(Communicator& comm, const std::string& reason);
inline void refuse_next_call(Communicator& comm, const std::string& reason) { comm.refuse(reason); }
inline void refuse_rebuild(Communicator& comm, const std::string& reason) {
  comm.refuse_rebuild(reason);
}

// Tells the other ranks that this rank's next collective call was refused before it was made. So
// they need not wait for it. The reason is the exception being handled, which the caller then
// rethrows. Throws only exceptions of signal handlers.
void announce_refusal(CommunicatorObject& self, Refuse refuse = &refuse_next_call);

// Seconds, a datetime.timedelta, infinity, or None for the default. `name` is the argument's.
std::optional<Duration> duration_argument(nb::handle value, const char* name);
// The same for a limit of time, such as a deadline, which is more than 0 s.
std::optional<Duration> limit_argument(nb::handle value, const char* name);
// The folders into which pip puts NCCL.
std::vector<std::string> library_folders();
// "sum", "product", ...
ReduceOp op_argument(nb::handle op);
// 32 bytes, or the name of a key file.
Key key_argument(nb::handle key);

// Python's `Received`.
nb::object to_python(const Received& received);

// Python's `Prepared`.
struct PreparedHandle {
  nb::object comm;  // Python's communicator; first, and so the last to go
  std::vector<nb::object> objects;
  std::vector<std::shared_ptr<Lease>> leases;
  nb::object result;
  std::string name;
  std::shared_ptr<OwnOperator> own = {};
  Prepared call;
};

// Keeps the objects and exports of a call's arrays for as long as `handle` lives.
template <typename Handle, typename... Arrays>
void keep(Handle& handle, Arrays&... arrays) {
  const auto one = [&](Array& array) {
    if (array.object.is_valid()) handle.objects.push_back(nb::borrow(array.object));
    if (array.lease) handle.leases.push_back(std::move(array.lease));
  };
  (one(arrays), ...);
}

using CommunicatorClass = nb::class_<CommunicatorObject>;

// One for each group of methods.
void bind_reductions(CommunicatorClass& cls);
void bind_extremes(CommunicatorClass& cls);
void bind_movement(CommunicatorClass& cls);
void bind_parts(CommunicatorClass& cls);
void bind_messages(CommunicatorClass& cls);
void bind_coalesced(CommunicatorClass& cls);
void bind_compression(CommunicatorClass& cls);
void bind_objects(CommunicatorClass& cls);
void bind_symmetric(nb::module_& module, CommunicatorClass& cls);

CommunicatorClass bind_communicator(nb::module_& module);
void bind_work(nb::module_& module);
void bind_endings(nb::module_& module);
void bind_world(nb::module_& module);
void bind_pool(nb::module_& module);
void bind_distribution(nb::module_& module);
void bind_fft(nb::module_& module);
void bind_matmul(nb::module_& module);
void bind_store(nb::module_& module);

}  // namespace hocket::python
