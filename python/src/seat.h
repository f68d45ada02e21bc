// What the bound classes share: the communicator behind Python's, options, the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "arguments.h"
#include "array.h"
#include "hocket/communicator.h"
#include "hocket/group.h"
#include "hocket/store.h"
#include "hocket/work.h"

namespace hocket::python {

// Python's `Work`: the C++ one, and what must outlive it.
struct WorkHandle {
  std::vector<nb::object> objects;  // the arrays of the call
  std::vector<std::unique_ptr<Lease>> leases;
  nb::object result;
  Work work;  // last: goes first, and nobody touches the arrays after it
};

// Python's `Communicator`: the C++ one and the world it came from, which it keeps alive.
struct Seat {
  Communicator comm;
  std::shared_ptr<World> world = {};  // null for ranks that are threads
  // Arrays of calls on GPUs' streams that must not go before the streams have come so far.
  std::shared_ptr<std::deque<WorkHandle>> held = std::make_shared<std::deque<WorkHandle>>();
};

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

// Runs a call that may wait; other Python threads go on meanwhile.
template <typename F>
decltype(auto) without_gil(F&& f) {
  const GilGivenAway given;
  return std::forward<F>(f)();
}

// Tells the other ranks that this one's next collective call was refused before it was made, so
// that they need not wait for it; the caller then raises what was wrong.
void announce_refusal(Seat& seat) noexcept;

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
  std::vector<nb::object> objects;
  std::vector<std::unique_ptr<Lease>> leases;
  nb::object result;
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
void bind_movement(CommunicatorClass& cls);
void bind_parts(CommunicatorClass& cls);
void bind_messages(CommunicatorClass& cls);
void bind_coalesced(CommunicatorClass& cls);
void bind_compression(CommunicatorClass& cls);
void bind_objects(CommunicatorClass& cls);
void bind_symmetric(nb::module_& module, CommunicatorClass& cls);

CommunicatorClass bind_communicator(nb::module_& module);
void bind_work(nb::module_& module);
void bind_world(nb::module_& module);
void bind_pool(nb::module_& module);
void bind_distribution(nb::module_& module);
void bind_store(nb::module_& module);

}  // namespace hocket::python
