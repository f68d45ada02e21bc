// What the bound classes share: the communicator behind Python's, options, the GIL.
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

// Gives the GIL away for as long as it lives. Where the interpreter ends meanwhile, Python before
// 3.14 ends a daemon thread that wants the GIL back by unwinding it, which no destructor survives:
// such a thread sleeps until the process has ended.
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

// For as long as it lives this thread's waits do not ask for signals (see `set_interrupt_check`):
// Python hears of them afterwards. For destructors, which have nobody to raise an exception to.
class SignalsLeftAlone {
 public:
  SignalsLeftAlone() noexcept;
  ~SignalsLeftAlone();
  SignalsLeftAlone(const SignalsLeftAlone&) = delete;
  SignalsLeftAlone& operator=(const SignalsLeftAlone&) = delete;
};

// Whether what goes does so because the process is about to exit.
bool is_ending();

// Throws what a signal's handler raises (Ctrl-C: KeyboardInterrupt) where one has come.
void throw_if_signalled();

// Runs a call that may wait; other Python threads go on meanwhile. What a signal's handler raises
// is what Python gets, whatever else comes of the call. Where the call fails, signals are looked
// for once more: Ctrl-C goes to all ranks, and most of them hear of it by the first one's Aborted.
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

// The same for what ends in moments, or is given up: no signal breaks it off.
template <typename F>
decltype(auto) without_gil_or_signals(F&& f) {
  const SignalsLeftAlone left;
  const GilGivenAway given;
  return std::forward<F>(f)();
}

// A resource: a Work as Python holds it. The end of a pending one gives the call up, which waits
// for whoever is at work on the communicator: without the GIL, which that one may want.
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

  // To be called once it is known: what has ended goes without further ado.
  void has_ended() noexcept { has_ended_ = true; }
  bool is_known_ended() const noexcept { return has_ended_; }

 private:
  bool has_ended_ = true;
};

class OwnOperator;
class Watchers;

// Python's `Work`: the C++ one, and what must outlive it.
struct WorkHandle {
  std::vector<nb::object> objects;  // the arrays of the call
  std::vector<std::shared_ptr<Lease>> leases;
  nb::object result;
  std::string call;                         // its name
  std::shared_ptr<OwnOperator> own = {};    // that combines; null: one of hocket's
  std::shared_ptr<Watchers> watchers = {};  // null: nobody waits for its end but by `work`
  bool given_up = false;                    // by the end of whoever awaited it
  Started work;  // last: goes first, and nobody touches the arrays after it
};

// What streams of GPUs are not yet through with. Guarded by the GIL, or by the mutex where there is
// none; what goes, goes without either.
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
  // Before what came meanwhile.
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
struct Seat {
  Seat(Communicator communicator, std::shared_ptr<World> its_world = {})
      : comm(std::move(communicator)),
        world(std::move(its_world)),
        first_deadline(comm.deadline()) {}
  Seat(Seat&&) noexcept = default;
  // The last one of a communicator closes it, and the last one of a world takes leave of the other
  // ranks, which is not done with the GIL.
  ~Seat();

  Communicator comm;
  std::shared_ptr<World> world;  // null for ranks that are threads
  bool is_closed = false;        // here; for people
  Duration first_deadline;       // of calls, when it was made
  bool allows_pickle = false;    // in calls that do not say
  // Arrays of calls on GPUs' streams that must not go before the streams have come so far.
  std::shared_ptr<HeldWork> held = std::make_shared<HeldWork>();
};

// Python's `SymmetricMemory`: what `comm.symmetric` is.
struct Symmetric {
  Seat seat;
};

// How a refused call is announced.
using Refuse = void (*)(Communicator& comm, const std::string& reason);
inline void refuse_next_call(Communicator& comm, const std::string& reason) { comm.refuse(reason); }
inline void refuse_rebuild(Communicator& comm, const std::string& reason) {
  comm.refuse_rebuild(reason);
}

// Tells the other ranks that this one's next collective call was refused before it was made, so
// that they need not wait for it, for the exception that is being handled; the caller then raises
// what was wrong. Throws only what a signal's handler raises meanwhile.
void announce_refusal(Seat& seat, Refuse refuse = &refuse_next_call);

// Seconds, a datetime.timedelta, infinity, or None for the default. `name` is the argument's.
std::optional<Duration> duration_argument(nb::handle value, const char* name);
// Where pip puts NCCL: beside every package.
std::vector<std::string> library_folders();
// "sum", "product", ...
ReduceOp op_argument(nb::handle op);
// Bytes (32 of them), or the name of a key file.
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

using CommunicatorClass = nb::class_<Seat>;

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
