// broadcast, all_gather, gather, scatter, all_to_all, barrier.
#include "hocket/error.h"
#include "verbs.h"

namespace hocket::python {
namespace {

struct AllGather {
  static void block(Communicator& comm, auto&&... args) { comm.all_gather(args...); }
  static Work start(Communicator& comm, auto&&... args) { return comm.all_gather_async(args...); }
};

struct Gather {
  static void block(Communicator& comm, auto&&... args) { comm.gather(args...); }
  static Work start(Communicator& comm, auto&&... args) { return comm.gather_async(args...); }
};

struct Scatter {
  static void block(Communicator& comm, auto&&... args) { comm.scatter(args...); }
  static Work start(Communicator& comm, auto&&... args) { return comm.scatter_async(args...); }
};

struct AllToAll {
  static void block(Communicator& comm, auto&&... args) { comm.all_to_all(args...); }
  static Work start(Communicator& comm, auto&&... args) { return comm.all_to_all_async(args...); }
};

struct Broadcast {
  static void block(Communicator& comm, auto&&... args) { comm.broadcast(args...); }
  static Work start(Communicator& comm, auto&&... args) { return comm.broadcast_async(args...); }
};

// The shape of `size` arrays like `x`, one above the other.
Shape stacked_shape(const Array& x, int size) {
  Shape shape = shape_of(x);
  shape.insert(shape.begin(), size);
  return shape;
}

// Whether `part` is entry number `rank` of `whole`, as calls in place have it.
bool is_own_part(const Array& part, const Array& whole, int rank) {
  return part.count > 0 && part.dtype == whole.dtype &&
         static_cast<std::byte*>(part.data) ==
             static_cast<std::byte*>(whole.data) + rank * part.count * size_of(part.dtype);
}

// `out` or, where it is None, a new array; in C order, which these calls want.
Array output_or_new(nb::handle out, const Array& like, const Shape& shape, nb::object& result) {
  result = out.is_none() ? new_array_like(like, shape) : nb::borrow(out);
  Array array = writable_array(result, "out");
  require_c_order(array, "out");
  return array;
}

Plan<RootOptions> plan_broadcast(Seat& seat, nb::handle x, int root, nb::handle timeout) {
  // The root's array is only read.
  return {.out = seat.comm.rank() == root ? read_array(x, "x") : writable_array(x, "x"),
          .in_place = true,
          .options = {root, duration_argument(timeout, "timeout")},
          .result = nb::borrow(x)};
}

Plan<CallOptions> plan_all_gather(Seat& seat, nb::handle x, nb::handle out, nb::handle timeout) {
  Plan<CallOptions> plan{.in = read_array(x, "x"),
                         .options = {duration_argument(timeout, "timeout")}};
  require_c_order(plan.in, "x");
  const Shape shape = out.is_none() ? stacked_shape(plan.in, seat.comm.size()) : Shape{};
  plan.out = output_or_new(out, plan.in, shape, plan.result);
  plan.in_place = is_own_part(plan.in, plan.out, seat.comm.rank());
  return plan;
}

Plan<RootOptions> plan_gather(
    Seat& seat, nb::handle x, nb::handle out, int root, nb::handle timeout) {
  Plan<RootOptions> plan{.in = read_array(x, "x"),
                         .options = {root, duration_argument(timeout, "timeout")}};
  require_c_order(plan.in, "x");
  if (seat.comm.rank() != root) return plan;
  const Shape shape = out.is_none() ? stacked_shape(plan.in, seat.comm.size()) : Shape{};
  plan.out = output_or_new(out, plan.in, shape, plan.result);
  plan.in_place = is_own_part(plan.in, plan.out, root);
  return plan;
}

Plan<RootOptions> plan_scatter(
    Seat& seat, nb::handle x, nb::handle out, int root, nb::handle timeout) {
  Plan<RootOptions> plan{.options = {root, duration_argument(timeout, "timeout")}};
  if (seat.comm.rank() != root) {
    if (out.is_none()) {
      throw InvalidArgument(
          "scatter wants out= at the ranks other than the root: how large a part "
          "is, and of which dtype, they cannot know");
    }
    plan.out = writable_array(out, "out");
    require_c_order(plan.out, "out");
    plan.result = nb::borrow(out);
    return plan;
  }
  plan.in = read_array(x, "x");
  require_c_order(plan.in, "x");
  Shape shape;
  if (out.is_none()) {
    shape = shape_of(plan.in);
    if (shape.empty() || shape[0] != seat.comm.size()) {
      throw InvalidArgument("scatter without out= wants x with a leading axis of " +
                            std::to_string(seat.comm.size()) + ", one entry a rank; x has shape " +
                            to_string(shape) + ". Reshape it, or give out=");
    }
    shape.erase(shape.begin());
  }
  plan.out = output_or_new(out, plan.in, shape, plan.result);
  if (is_own_part(plan.out, plan.in, root)) {
    plan.out = writable_array(x, "x");
    plan.in_place = true;
  }
  return plan;
}

Plan<CallOptions> plan_all_to_all(nb::handle x, nb::handle out, nb::handle timeout) {
  Plan<CallOptions> plan{.in = read_array(x, "x"),
                         .options = {duration_argument(timeout, "timeout")}};
  require_c_order(plan.in, "x");
  const Shape shape = out.is_none() ? shape_of(plan.in) : Shape{};
  plan.out = output_or_new(out, plan.in, shape, plan.result);
  plan.in_place = plan.in.data == plan.out.data && plan.in.count == plan.out.count;
  return plan;
}

void bind_broadcast(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "broadcast",
      [](Seat& s, nb::handle x, int root, nb::handle timeout, nb::handle stream) {
        return block<Broadcast>(s, stream, [&] { return plan_broadcast(s, x, root, timeout); });
      },
      arg("x").none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def broadcast(self, x: Array, root: int = 0, timeout: Timeout = None, stream: "
              "Stream = None) -> Array"),
      R"(Send the root's array to all ranks, in place.

Parameters
----------
x : array
    At the root what is sent (it may be read-only), elsewhere where it goes: as many elements, of
    the same dtype and in the same order of axes.
root : int
    The rank that sends.
timeout : float or datetime.timedelta, optional
    Seconds this call may take; by default the communicator's `deadline`.

Returns
-------
array
    `x`.
)");
  cls.def(
      "broadcast_async",
      [](Seat& s, nb::handle x, int root, nb::handle timeout, nb::handle stream) {
        return start<Broadcast>(s, stream, [&] { return plan_broadcast(s, x, root, timeout); });
      },
      arg("x").none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def broadcast_async(self, x: Array, root: int = 0, timeout: Timeout = None, stream: "
              "Stream = None) -> Work"),
      "Start a `broadcast`; the array must be left alone until the Work is done.");
  cls.def(
      "prepare_broadcast",
      [](Seat& s, nb::handle x, int root, nb::handle timeout, nb::handle stream) {
        auto plan = read_arguments(s, [&] { return plan_broadcast(s, x, root, timeout); });
        choose_stream(plan, stream);
        PreparedHandle handle{.call = without_gil([&] {
                                return s.comm.prepare_broadcast(plan.out.output(), plan.options);
                              })};
        keep(handle, plan.out);
        handle.result = std::move(plan.result);
        return handle;
      },
      arg("x").none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def prepare_broadcast(self, x: Array, root: int = 0, timeout: Timeout = None, "
              "stream: Stream = None) "
              "-> Prepared"),
      "Check a `broadcast` once, to call it again and again on the same array.");
}

void bind_gathers(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "all_gather",
      [](Seat& s, nb::handle x, nb::handle out, nb::handle timeout, nb::handle stream) {
        return block<AllGather>(s, stream, [&] { return plan_all_gather(s, x, out, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def all_gather(self, x: Array, out: Optional[Array] = None, "
              "timeout: Timeout = None, stream: Stream = None) -> Array"),
      R"(Collect every rank's array on every rank.

Parameters
----------
x : array
    This rank's elements, in C order; as many on every rank, of one dtype.
out : array, optional
    size * x.size elements, rank after rank. To work in place pass ``x=out[rank]``.

Returns
-------
array
    `out`, or a new array of shape (size, \*x.shape).
)");
  cls.def(
      "all_gather_async",
      [](Seat& s, nb::handle x, nb::handle out, nb::handle timeout, nb::handle stream) {
        return start<AllGather>(s, stream, [&] { return plan_all_gather(s, x, out, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def all_gather_async(self, x: Array, out: Optional[Array] = None, "
              "timeout: Timeout = None, stream: Stream = None) -> Work"),
      "Start an `all_gather`; the arrays must be left alone until the Work is done.");
  cls.def(
      "gather",
      [](Seat& s, nb::handle x, nb::handle out, int root, nb::handle timeout, nb::handle stream) {
        return block<Gather>(s, stream, [&] { return plan_gather(s, x, out, root, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def gather(self, x: Array, out: Optional[Array] = None, root: int = 0, "
              "timeout: Timeout = None, stream: Stream = None) -> Optional[Array]"),
      R"(Collect every rank's array at the root.

Parameters
----------
x : array
    This rank's elements, in C order; as many on every rank, of one dtype.
out : array, optional
    At the root: size * x.size elements, rank after rank. Elsewhere ignored. To work in place pass
    ``x=out[root]`` there.
root : int
    The rank that collects.

Returns
-------
array or None
    At the root `out`, or a new array of shape (size, \*x.shape); None elsewhere.
)");
  cls.def(
      "gather_async",
      [](Seat& s, nb::handle x, nb::handle out, int root, nb::handle timeout, nb::handle stream) {
        return start<Gather>(s, stream, [&] { return plan_gather(s, x, out, root, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def gather_async(self, x: Array, out: Optional[Array] = None, root: int = 0, "
              "timeout: Timeout = None, stream: Stream = None) -> Work"),
      "Start a `gather`; the arrays must be left alone until the Work is done.");
}

void bind_scatters(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "scatter",
      [](Seat& s, nb::handle x, nb::handle out, int root, nb::handle timeout, nb::handle stream) {
        return block<Scatter>(s, stream, [&] { return plan_scatter(s, x, out, root, timeout); });
      },
      arg("x").none() = nb::none(),
      arg("out") = nb::none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def scatter(self, x: Optional[Array] = None, out: Optional[Array] = None, "
              "root: int = 0, timeout: Timeout = None, stream: Stream = None) -> Array"),
      R"(Hand the entries of the root's array out, one a rank.

Parameters
----------
x : array, optional
    At the root: size * share elements in C order, rank after rank; without `out` its shape is
    (size, \*share). Elsewhere ignored.
out : array
    This rank's share; required at ranks other than the root. To work in place at the root pass
    ``out=x[root]``.
root : int
    The rank that hands out.

Returns
-------
array
    `out`, or at the root a new array of the shape of a share.
)");
  cls.def(
      "scatter_async",
      [](Seat& s, nb::handle x, nb::handle out, int root, nb::handle timeout, nb::handle stream) {
        return start<Scatter>(s, stream, [&] { return plan_scatter(s, x, out, root, timeout); });
      },
      arg("x").none() = nb::none(),
      arg("out") = nb::none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def scatter_async(self, x: Optional[Array] = None, out: Optional[Array] = None, "
              "root: int = 0, timeout: Timeout = None, stream: Stream = None) -> Work"),
      "Start a `scatter`; the arrays must be left alone until the Work is done.");
  cls.def(
      "all_to_all",
      [](Seat& s, nb::handle x, nb::handle out, nb::handle timeout, nb::handle stream) {
        return block<AllToAll>(s, stream, [&] { return plan_all_to_all(x, out, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def all_to_all(self, x: Array, out: Optional[Array] = None, "
              "timeout: Timeout = None, stream: Stream = None) -> Array"),
      R"(Send a part of `x` to each rank and get one from each.

Parameters
----------
x : array
    size parts of equal size, in C order: part r goes to rank r.
out : array, optional
    As many elements: part r comes from rank r. May be `x` itself.

Returns
-------
array
    `out`, or a new array of the shape of `x`.
)");
  cls.def(
      "all_to_all_async",
      [](Seat& s, nb::handle x, nb::handle out, nb::handle timeout, nb::handle stream) {
        return start<AllToAll>(s, stream, [&] { return plan_all_to_all(x, out, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def all_to_all_async(self, x: Array, out: Optional[Array] = None, "
              "timeout: Timeout = None, stream: Stream = None) -> Work"),
      "Start an `all_to_all`; the arrays must be left alone until the Work is done.");
}

void bind_barrier(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "barrier",
      [](Seat& s, nb::handle timeout, nb::handle stream) {
        const CallOptions options{duration_argument(timeout, "timeout"), stream_argument(stream)};
        without_gil([&] { s.comm.barrier(options); });
      },
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def barrier(self, timeout: Timeout = None, stream: Stream = None) -> None"),
      R"(Return when all ranks have come here.

Parameters
----------
timeout : float or datetime.timedelta, optional
    Seconds this call may take; by default the communicator's `deadline`.
stream : stream or int, optional
    With a GPU's stream the barrier is one of the streams: it returns at once, and what follows on
    this one waits until all ranks' streams have come here.
)");
  cls.def(
      "barrier_async",
      [](Seat& s, nb::handle timeout, nb::handle stream) {
        const CallOptions options{duration_argument(timeout, "timeout"), stream_argument(stream)};
        WorkHandle handle{.result = nb::none()};
        handle.work = without_gil([&] { return s.comm.barrier_async(options); });
        return handle;
      },
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def barrier_async(self, timeout: Timeout = None, stream: Stream = None) -> Work"),
      "Start a `barrier`.");
}

}  // namespace

void bind_movement(CommunicatorClass& cls) {
  bind_broadcast(cls);
  bind_gathers(cls);
  bind_scatters(cls);
  bind_barrier(cls);
}

}  // namespace hocket::python
