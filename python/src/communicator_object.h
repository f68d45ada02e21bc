// Declares what the module's classes share: the object behind Python's Communicator, options, the
// GIL.
#pragma once

#include <cxxabi.h>
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

// Releases the GIL while the object exists. After the interpreter has ended, Python before 3.14
// unwinds the stack of a daemon thread that asks for the GIL. An unwinding that leaves a destructor
// ends the process, so this destructor lets the thread sleep until the process exits.
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

// Holds the GIL while the object exists, in a thread that Python may not know. If the interpreter
// has ended, the thread sleeps, as with GilGivenAway.
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

// Runs `f` with the GIL, in a thread that Python may not know. `f` may release the GIL and acquire
// it again. If the interpreter has ended meanwhile, the thread sleeps, as with GilGivenAway.
template <typename F>
decltype(auto) with_gil(F&& f) {
  const GilTaken gil;
  try {
    return std::forward<F>(f)();
  } catch (const abi::__forced_unwind&) {
    for (;;) ::pause();
  }
}

// Marks this thread as calling a Python function from within hocket, while the object exists. At
// Python's end, `finish_callbacks` forbids new callbacks and waits for the running ones.
class Callback {
 public:
  Callback() noexcept;
  ~Callback();
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  // Returns false once Python ends, except in Python's main thread.
  bool may_run() const noexcept;
};
void finish_callbacks();

// While the object exists, waits of this thread do not check for signals (see
// `set_interrupt_check`). Python handles the signals afterwards. Destructors use it because they
// cannot raise.
class SignalsLeftAlone {
 public:
  SignalsLeftAlone() noexcept;
  ~SignalsLeftAlone();
  SignalsLeftAlone(const SignalsLeftAlone&) = delete;
  SignalsLeftAlone& operator=(const SignalsLeftAlone&) = delete;
};

// Returns true if objects are destroyed because the process is about to exit.
bool is_ending();

// Throws the exception that a signal's handler has raised, if any (Ctrl-C: KeyboardInterrupt).
void throw_if_signalled();

// Runs a call that may wait. Other Python threads run meanwhile. An exception of a signal's handler
// takes precedence over the call's outcome. If the call fails, signals are checked once more:
// Ctrl-C reaches all ranks, and most ranks see another rank's Aborted before they notice their own
// signal.
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
  // A signal may have arrived although the call succeeded.
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

// Runs work that ends soon, without the GIL. Signals do not interrupt it.
template <typename F>
decltype(auto) without_gil_or_signals(F&& f) {
  const SignalsLeftAlone left;
  const GilGivenAway given;
  return std::forward<F>(f)();
}

// A resource: a Work as Python holds it. If the call is pending, the destructor gives the call up.
// For that it waits for other threads that work on the communicator. It waits without the GIL,
// because those threads may need the GIL.
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

  // Call it once the call is known to have ended. The destructor then does not wait.
  void has_ended() noexcept { has_ended_ = true; }
  bool is_known_ended() const noexcept { return has_ended_; }

 private:
  bool has_ended_ = true;
};

class OwnOperator;
class Watchers;

// The state of Python's `Work`: the C++ Work, and the objects that must outlive it.
struct WorkHandle {
  std::vector<nb::object> objects;  // the arrays of the call, kept alive
  std::vector<std::shared_ptr<Lease>> leases;
  nb::object result;
  std::string call;                         // the call's name, such as "all_reduce"
  std::shared_ptr<OwnOperator> own = {};    // the user's operator; null: one of hocket's
  std::shared_ptr<Watchers> watchers = {};  // told when the call ends; null: nobody asked
  bool given_up = false;                    // true once the destructor of its awaiter gave it up
  // Set for a call that carries Python objects: makes `result` once the call has succeeded.
  // `result` is null until then.
  std::function<nb::object()> make = {};
  Started work;  // last: destroyed first, and the arrays are unused after it
};

// Keeps the arrays of calls that GPUs' streams have not finished. The list is guarded by the GIL,
// or by the mutex in a Python without GIL. Arrays are destroyed after the mutex has been released.
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
  // Puts works back in front of those that other threads have added since `take`.
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

// The state of Python's `Communicator`: the C++ Communicator, and its world, which it keeps alive.
struct CommunicatorObject {
  CommunicatorObject(Communicator communicator, std::shared_ptr<World> its_world = {})
      : comm(std::move(communicator)),
        world(std::move(its_world)),
        first_deadline(comm.deadline()) {}
  CommunicatorObject(CommunicatorObject&&) noexcept = default;
  // The destructor closes the communicator if no other object holds it. The last object of a world
  // also leaves the job, without the GIL, because leaving may wait.
  ~CommunicatorObject();

  Communicator comm;
  std::shared_ptr<World> world;  // null for ranks that are threads
  bool is_closed = false;        // closed through this object; only shown by repr
  Duration first_deadline;       // the calls' deadline when this object was made
  bool allows_pickle = false;    // for calls without an argument allow_pickle
  // Keeps the arrays of calls on GPUs' streams until the streams have passed these calls.
  std::shared_ptr<HeldWork> held = std::make_shared<HeldWork>();
};

// The state of Python's `SymmetricMemory`, the type of `comm.symmetric`.
struct Symmetric {
  CommunicatorObject self;
};

// A function that announces a refused call to the other ranks.
using Refuse = void (*)(Communicator& comm, const std::string& reason);
inline void refuse_next_call(Communicator& comm, const std::string& reason) { comm.refuse(reason); }
inline void refuse_rebuild(Communicator& comm, const std::string& reason) {
  comm.refuse_rebuild(reason);
}

// Tells the other ranks that this rank's next collective call was refused before it began, so that
// they do not wait for it. Call it in a handler: the handled exception gives the reason, and the
// caller rethrows it. Throws only exceptions of signal handlers.
void announce_refusal(CommunicatorObject& self, Refuse refuse = &refuse_next_call);

// Reads a duration: seconds, a datetime.timedelta, or infinity. Returns nothing for None, which
// means the default.
std::optional<Duration> duration_argument(nb::handle value, const char* name);
// Reads a time limit, such as a deadline: a duration of more than 0 s, or None as above.
std::optional<Duration> limit_argument(nb::handle value, const char* name);
// Returns the folders into which pip installs NCCL.
std::vector<std::string> library_folders();
// Reads the name of one of hocket's operators: "sum", "product", ...
ReduceOp op_argument(nb::handle op);
// Reads a key: 32 bytes, or the name of a key file.
Key key_argument(nb::handle key);

// Converts to Python's `Received`.
nb::object to_python(const Received& received);

// The state of Python's `Prepared`.
struct PreparedHandle {
  nb::object comm;  // Python's Communicator; the first member, so it is destroyed last
  std::vector<nb::object> objects;
  std::vector<std::shared_ptr<Lease>> leases;
  nb::object result;
  std::string name;
  std::shared_ptr<OwnOperator> own = {};
  nb::object stream = {};  // the caller's stream, kept alive
  Prepared call;
};

// Keeps the objects and leases of a call's arrays until `handle` is destroyed.
template <typename Handle, typename... Arrays>
void keep(Handle& handle, Arrays&... arrays) {
  const auto one = [&](Array& array) {
    if (array.object.is_valid()) handle.objects.push_back(nb::borrow(array.object));
    if (array.lease) handle.leases.push_back(std::move(array.lease));
  };
  (one(arrays), ...);
}

using CommunicatorClass = nb::class_<CommunicatorObject>;

// Each function defines a group of the communicator's methods.
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
