// Python's Work and Prepared: calls that were started, and calls that were prepared.
#include <algorithm>
#include <chrono>

#include "device.h"
#include "docstrings.h"
#include "errors.h"
#include "hocket/error.h"
#include "immutable.h"
#include "own_operator.h"

namespace hocket::python {
namespace {

// Returns the current stream of the framework of the call's arrays. Returns nothing for host
// memory.
std::optional<StreamRef> current_stream(const WorkHandle& handle) {
  for (const nb::object& object : handle.objects) {
    const Array array = read_array(object, "x");
    if (array.is_on_gpu()) return array.stream.value_or(StreamRef());
  }
  return std::nullopt;
}

// Throws Aborted if the call was given up because its awaiting task was cancelled. Such a call has
// no result.
void require_kept(const WorkHandle& handle) {
  if (!handle.given_up) return;
  throw Aborted({.code = ErrorCode::kAborted,
                 .message = "the call was given up, as the task that awaited it was cancelled",
                 .operation = handle.call});
}

// Runs `wait`, which waits for the call's end or makes a prepared call, without the GIL. If the
// function of a user's operator raised, the error gets that exception as its cause.
template <typename Handle, typename Wait>
auto explained(Handle& handle, const Wait& wait) {
  if (handle.own == nullptr) return without_gil(wait);
  return handle.own->explain([&] { return without_gil(wait); });
}

// Copies received data to the user's strided array. Call it once the call has succeeded.
void copy_back(const WorkHandle& handle) {
  for (const auto& lease : handle.leases) lease->copy_back();
}

// Finishes the result. A tuple is a call's several results, which are finished one by one.
nb::object all_finished(nb::object result, std::optional<StreamRef> stream) {
  if (!PyTuple_CheckExact(result.ptr())) return finished(std::move(result), stream);
  nb::list each;
  for (const nb::handle one : result) each.append(finished(nb::borrow(one), stream));
  return nb::tuple(each);
}

// Returns the result of a call that has ended. If `stream` is set, the call may still be running,
// but later work on `stream` waits for it.
nb::object finish(WorkHandle& handle, std::optional<StreamRef> stream = {}) {
  if (!stream) handle.work.has_ended();
  if (handle.make) {
    if (!handle.result.is_valid()) handle.result = handle.make();
    return handle.result;
  }
  copy_back(handle);
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

bool test(WorkHandle& handle) {
  const bool has_ended = without_gil([&] { return handle.work.test(); });
  if (!has_ended) return false;
  handle.work.has_ended();
  if (!handle.leases.empty() && !handle.work.error()) copy_back(handle);
  return true;
}

nb::object exception(WorkHandle& handle) {
  try {
    require_kept(handle);
    explained(handle, [&] {
      // The call has ended, so `wait` throws its complete error at once.
      if (handle.work.error()) handle.work.wait();
    });
    if (handle.make && test(handle)) finish(handle);  // decoding the objects may fail
  } catch (const Error&) {
    return to_exception(std::current_exception());
  } catch (const nb::python_error& error) {
    // Returns only an error of the call, with its cause. An exception of a signal handler is
    // raised.
    const nb::object refused = nb::module_::import_("hocket.errors").attr("InvalidArgument");
    if (!error.matches(refused)) throw;
    return nb::borrow(error.value());
  }
  return nb::none();
}

nb::object received(WorkHandle& handle) {
  const std::optional<Received> from = handle.work.received();
  if (!from) return nb::none();
  copy_back(handle);
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

// Gives a call up, as if the program had dropped the Work. A pending call is cancelled.
void give_up(WorkHandle& handle) {
  if (test(handle)) return;
  handle.given_up = true;
  without_gil_or_signals([&] { const Work last(std::move(static_cast<Work&>(handle.work))); });
  handle.work.has_ended();
}

// Waits without checking for signals. Returns true if the call has ended, with success or failure.
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
  // Without a GIL, `lock_self` admits one thread at a time to a Work, except while that thread
  // waits.
  nb::class_<WorkHandle>(module, "Work", docstring_of("Work"))
      .def("wait",
           &wait,
           nb::lock_self(),
           arg("timeout") = nb::none(),
           arg("stream") = nb::none(),
           nb::sig("def wait(self, timeout: Timeout = None, stream: Stream = None) -> Any"),
           docstring_of("Work.wait"))
      .def("synchronize",
           &synchronize,
           nb::lock_self(),
           arg("timeout") = nb::none(),
           nb::sig("def synchronize(self, timeout: Timeout = None) -> Any"),
           docstring_of("Work.synchronize"))
      .def("_ends_within",
           &ends_within,
           nb::lock_self(),
           arg("seconds"),
           nb::sig("def _ends_within(self, seconds: float) -> bool"))
      .def(
          "test",
          &test,
          nb::lock_self(),
          nb::sig("def test(self) -> bool"),
          "True if the call has finished, with or without error. Moves the call forward if it can.")
      .def_prop_ro("done",
                   &test,
                   nb::lock_self(),
                   nb::sig("def done(self) -> bool"),
                   "The same as `test()`.")
      .def_prop_ro("exception",
                   &exception,
                   nb::lock_self(),
                   nb::sig("def exception(self) -> Optional[Error]"),
                   "The error of a finished call; None while it is pending, and if it succeeded.")
      .def(
          "add_done_callback",
          [](nb::handle self, nb::handle fn) {
            nb::module_::import_("hocket._waiting.works").attr("add_done_callback")(self, fn);
          },
          arg("fn"),
          nb::sig("def add_done_callback(self, fn: Callable[[Work], object]) -> None"),
          docstring_of("Work.add_done_callback"))
      .def(
          "__await__",
          [](nb::handle self) { return waiting("finished", self).attr("__await__")(); },
          nb::sig("def __await__(self) -> Generator[Any, None, Any]"),
          docstring_of("Work.__await__"))
      .def("_give_up", &give_up, nb::lock_self(), nb::sig("def _give_up(self) -> None"))
      .def_prop_ro(
          "_is_on_gpu",
          [](const WorkHandle& h) { return current_stream(h).has_value(); },
          nb::lock_self(),
          nb::sig("def _is_on_gpu(self) -> bool"))
      .def(
          "__repr__", [](WorkHandle& h) { return to_text(repr(h)); }, nb::lock_self())
      .def_prop_ro("received",
                   &received,
                   nb::lock_self(),
                   nb::sig("def received(self) -> Optional[Received]"),
                   docstring_of("Work.received"));

  nb::class_<PreparedHandle>(module, "Prepared", docstring_of("Prepared"))
      .def(
          "__call__",
          [](PreparedHandle& h) {
            explained(h, [&] { h.call(); });
            return h.result;
          },
          nb::sig("def __call__(self) -> Any"),
          "Make the call; returns the result of the blocking call.")
      .def("start", &start, nb::sig("def start(self) -> Work"), "Start the call.")
      .def("__repr__",
           [](const PreparedHandle& h) { return to_text("<hocket.Prepared of " + h.name + ">"); });
}

}  // namespace hocket::python
