// Calls that have been started, and calls that have been prepared.
#include <algorithm>
#include <chrono>

#include "device.h"
#include "errors.h"
#include "hocket/error.h"
#include "immutable.h"
#include "own_operator.h"

namespace hocket::python {
namespace {

// The stream that is current in the framework of the call's arrays; absent for host memory.
std::optional<StreamRef> current_stream(const WorkHandle& handle) {
  for (const nb::object& object : handle.objects) {
    const Array array = read_array(object, "x");
    if (array.is_on_gpu()) return array.stream.value_or(StreamRef());
  }
  return std::nullopt;
}

// A call that its awaiter gave up has no result; this raises Aborted.
void require_kept(const WorkHandle& handle) {
  if (!handle.given_up) return;
  throw Aborted({.code = ErrorCode::kAborted,
                 .message = "the call was given up, as the task that awaited it was cancelled",
                 .operation = handle.call});
}

// Waits for a call's end, or makes a prepared call. Adds the cause to errors of a user's operator.
template <typename Handle, typename Wait>
auto explained(Handle& handle, const Wait& wait) {
  if (handle.own == nullptr) return without_gil(wait);
  try {
    return without_gil(wait);
  } catch (const InvalidArgument&) {
    handle.own->rethrow();
  }
}

// Moves the received values to the user's array, once the call has ended well.
void land(const WorkHandle& handle) {
  for (const auto& lease : handle.leases) lease->land();
}

// Finishes the result; for a call with several results, each of them.
nb::object all_finished(nb::object result, std::optional<StreamRef> stream) {
  if (!PyTuple_CheckExact(result.ptr())) return finished(std::move(result), stream);
  nb::list each;
  for (const nb::handle one : result) each.append(finished(nb::borrow(one), stream));
  return nb::tuple(each);
}

// The call's result, once it has ended, or in order with later work on `stream`.
nb::object finish(WorkHandle& handle, std::optional<StreamRef> stream = {}) {
  if (!stream) handle.work.has_ended();
  if (handle.make) {
    if (!handle.result.is_valid()) handle.result = handle.make();
    return handle.result;
  }
  land(handle);
  handle.result = all_finished(std::move(handle.result), stream);
  return handle.result;
}

nb::object wait(WorkHandle& handle, nb::handle timeout, nb::handle stream) {
  require_kept(handle);
  const auto limit = duration_argument(timeout, "timeout");
  std::optional<StreamRef> ordered = stream_argument(stream);
  if (!limit && !ordered) ordered = current_stream(handle);
  if (ordered) {
    explained(handle, [&] { handle.work.wait(*ordered); });
    if (!limit) return finish(handle, ordered);
  }
  if (!limit) {
    explained(handle, [&] { handle.work.wait(); });
    return finish(handle);
  }
  if (!explained(handle, [&] { return handle.work.wait_for(*limit); })) {
    PyErr_SetString(PyExc_TimeoutError, "the call is still under way; it goes on");
    throw nb::python_error();
  }
  return finish(handle);
}

nb::object synchronize(WorkHandle& handle, nb::handle timeout) {
  require_kept(handle);
  const Duration limit = duration_argument(timeout, "timeout").value_or(kForever);
  if (!explained(handle, [&] { return handle.work.wait_for(limit); })) {
    PyErr_SetString(PyExc_TimeoutError, "the call is still under way; it goes on");
    throw nb::python_error();
  }
  return finish(handle);
}

nb::object exception(WorkHandle& handle) {
  try {
    require_kept(handle);
    explained(handle, [&] {
      if (handle.work.error()) handle.work.wait();  // finished: throws at once, and in full
    });
    if (handle.make && handle.work.test()) finish(handle);  // what has come may be no object
  } catch (const Error&) {
    return to_exception(std::current_exception());
  } catch (const nb::python_error& error) {
    // only an error of the call, with its cause; not an exception of a signal handler
    const nb::object refused = nb::module_::import_("hocket.errors").attr("InvalidArgument");
    if (!error.matches(refused)) throw;
    return nb::borrow(error.value());
  }
  return nb::none();
}

nb::object received(WorkHandle& handle) {
  const std::optional<Received> from = handle.work.received();
  if (!from) return nb::none();
  land(handle);
  return to_python(*from);
}

std::string repr(WorkHandle& handle) {
  const std::string name =
      "<hocket.Work" + (handle.call.empty() ? std::string() : " of " + handle.call);
  if (handle.given_up) return name + ", given up>";
  std::optional<Status> error;
  const bool has_ended = without_gil([&] {
    const bool ended = handle.work.test();
    if (ended) error = handle.work.error();
    return ended;
  });
  if (error) return name + ", failed: " + error->message + ">";
  return name + (has_ended ? ", finished>" : ", under way>");
}

bool test(WorkHandle& handle) {
  const bool has_ended = without_gil([&] { return handle.work.test(); });
  if (!has_ended) return false;
  handle.work.has_ended();
  if (!handle.leases.empty() && !handle.work.error()) land(handle);
  return true;
}

// Acts as if the Work were dropped: a pending call is cancelled.
void give_up(WorkHandle& handle) {
  if (test(handle)) return;
  handle.given_up = true;
  without_gil_or_signals([&] { const Work last(std::move(static_cast<Work&>(handle.work))); });
  handle.work.has_ended();
}

// Waits without regard to signals. True once the call has ended, well or not.
bool ends_within(WorkHandle& handle, double seconds) {
  require_kept(handle);
  const auto limit =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::max(0.0, seconds)));
  return without_gil_or_signals([&] {
    try {
      return handle.work.wait_for(limit);
    } catch (const Error&) {
      return true;
    }
  });
}

nb::object waiting(const char* function, nb::handle self) {
  return nb::module_::import_("hocket._waiting.works").attr(function)(self);
}

WorkHandle start(PreparedHandle& prepared) {
  WorkHandle handle{.objects = prepared.objects,
                    .leases = prepared.leases,
                    .result = prepared.result,
                    .call = prepared.name,
                    .own = prepared.own};
  handle.work = without_gil([&] { return prepared.call.start(); });
  return handle;
}

}  // namespace

void bind_work(nb::module_& module) {
  using nb::arg;
  // Without a GIL, `lock_self` lets one thread at a time into a Work, but for where it waits.
  nb::class_<WorkHandle>(module, "Work", R"(A call that has been started and may not have finished.

Keeps its arrays alive; leave them alone until it is done. Dropping a pending Work cancels the call,
which fails the communicator on all ranks.
)")
      .def("wait",
           &wait,
           nb::lock_self(),
           arg("timeout") = nb::none(),
           arg("stream") = nb::none(),
           nb::sig("def wait(self, timeout: Timeout = None, stream: Stream = None) -> Any"),
           R"(Wait for the call to finish.

A call on arrays in a GPU's memory is waited for by a stream: this returns at once, and what is put
on the stream from now on comes after the call. Use `synchronize` to wait here.

Parameters
----------
timeout : float or datetime.timedelta, optional
    Seconds to wait here; the call's own deadline holds besides.
stream : stream or int, optional
    The stream that waits; by default the current one of the arrays' framework.

Returns
-------
array or None
    What the blocking call would have returned.

Raises
------
TimeoutError
    Time ran out here; the call goes on.
Error
    The call's error.
)")
      .def("synchronize",
           &synchronize,
           nb::lock_self(),
           arg("timeout") = nb::none(),
           nb::sig("def synchronize(self, timeout: Timeout = None) -> Any"),
           R"(Wait here for the call to finish, on the GPU too.

Parameters
----------
timeout : float or datetime.timedelta, optional
    Seconds to wait; the call's own deadline holds besides.

Returns
-------
array or None
    What the blocking call would have returned.

Raises
------
TimeoutError
    Time ran out here; the call goes on.
Error
    The call's error.
)")
      .def("_ends_within",
           &ends_within,
           nb::lock_self(),
           arg("seconds"),
           nb::sig("def _ends_within(self, seconds: float) -> bool"))
      .def("test",
           &test,
           nb::lock_self(),
           nb::sig("def test(self) -> bool"),
           "True when finished, with or without error. Gives the call a chance to move.")
      .def_prop_ro("done",
                   &test,
                   nb::lock_self(),
                   nb::sig("def done(self) -> bool"),
                   "The same as `test()`.")
      .def_prop_ro("exception",
                   &exception,
                   nb::lock_self(),
                   nb::sig("def exception(self) -> Optional[Error]"),
                   "The error of a finished call; None while it is pending or when it succeeded.")
      .def(
          "add_done_callback",
          [](nb::handle self, nb::handle fn) {
            nb::module_::import_("hocket._waiting.works").attr("add_done_callback")(self, fn);
          },
          arg("fn"),
          nb::sig("def add_done_callback(self, fn: Callable[[Work], object]) -> None"),
          R"(Have ``fn(work)`` called once the call has ended, well or not.

In a thread of hocket's, or here and now where it has ended. Until then the Work is kept. What `fn`
raises is printed. Where the program ends first, the call has two seconds more, and is then given up.
)")
      .def(
          "__await__",
          [](nb::handle self) { return waiting("finished", self).attr("__await__")(); },
          nb::sig("def __await__(self) -> Generator[Any, None, Any]"),
          R"(``await work``, under asyncio or trio: what `synchronize` returns, or raises.

Where the task that awaits it is cancelled, the call is given up, as by dropping the Work.
)")
      .def("_give_up", &give_up, nb::lock_self(), nb::sig("def _give_up(self) -> None"))
      .def_prop_ro(
          "_is_on_gpu",
          [](const WorkHandle& h) { return current_stream(h).has_value(); },
          nb::lock_self(),
          nb::sig("def _is_on_gpu(self) -> bool"))
      .def(
          "__repr__", [](WorkHandle& h) { return to_text(repr(h)); }, nb::lock_self())
      .def_prop_ro(
          "received",
          &received,
          nb::lock_self(),
          nb::sig("def received(self) -> Optional[Received]"),
          "Who sent and how much, (source, tag, count), once a `recv_async` has finished; None "
          "before, when it failed, and of every other call.");

  nb::class_<PreparedHandle>(
      module, "Prepared", R"(A checked call, to be made again and again on the same arrays.

Keeps its arrays alive. Every rank prepares and makes the same calls.
)")
      .def(
          "__call__",
          [](PreparedHandle& h) {
            explained(h, [&] { h.call(); });
            return h.result;
          },
          nb::sig("def __call__(self) -> Any"),
          "Make the call; returns what the blocking one returns.")
      .def("start", &start, nb::sig("def start(self) -> Work"), "Start the call.")
      .def("__repr__",
           [](const PreparedHandle& h) { return to_text("<hocket.Prepared of " + h.name + ">"); });
}

}  // namespace hocket::python
