// all_reduce, reduce, reduce_scatter, reproducible_sum.
#include "hocket/error.h"
#include "verbs.h"

namespace hocket::python {
namespace {

struct AllReduce {
  static void block(Communicator& comm, auto&&... args) { comm.all_reduce(args...); }
  static Work start(Communicator& comm, auto&&... args) { return comm.all_reduce_async(args...); }
  static Prepared prepare(Communicator& comm, const Plan<ReduceOptions>& plan) {
    if (plan.in_place) return comm.prepare_all_reduce(plan.out.output(), plan.options);
    return comm.prepare_all_reduce(plan.in.input(), plan.out.output(), plan.options);
  }
};

struct Reduce {
  static void block(Communicator& comm, auto&&... args) { comm.reduce(args...); }
  static Work start(Communicator& comm, auto&&... args) { return comm.reduce_async(args...); }
  static Prepared prepare(Communicator& comm, const Plan<ReduceRootOptions>& plan) {
    const ConstArrayView in = plan.in_place ? plan.out.output() : plan.in.input();
    return comm.prepare_reduce(in, plan.out.output(), plan.options);
  }
};

struct ReduceScatter {
  static void block(Communicator& comm, auto&&... args) { comm.reduce_scatter(args...); }
  static Work start(Communicator& comm, auto&&... args) {
    return comm.reduce_scatter_async(args...);
  }
  static Prepared prepare(Communicator& comm, const Plan<ReduceOptions>& plan) {
    const ConstArrayView in = plan.in_place ? plan.out.output() : plan.in.input();
    return comm.prepare_reduce_scatter(in, plan.out.output(), plan.options);
  }
};

Plan<ReduceOptions> plan_all_reduce(nb::handle x,
                                    nb::handle out,
                                    nb::handle op,
                                    nb::handle timeout) {
  const ReduceOptions options{op_argument(op), duration_argument(timeout, "timeout")};
  if (out.is_none()) {
    return {.out = writable_array(x, "x"),
            .in_place = true,
            .options = options,
            .result = nb::borrow(x)};
  }
  Plan<ReduceOptions> plan{.in = read_array(x, "x"),
                           .out = writable_array(out, "out"),
                           .options = options,
                           .result = nb::borrow(out)};
  require_same_order(plan.in, "x", plan.out, "out");
  return plan;
}

Plan<ReduceRootOptions> plan_reduce(
    Seat& seat, nb::handle x, nb::handle out, int root, nb::handle op, nb::handle timeout) {
  const bool is_root = seat.comm.rank() == root;
  Plan<ReduceRootOptions> plan{
      .options = {op_argument(op), root, duration_argument(timeout, "timeout")}};
  if (!is_root) {
    plan.in = read_array(x, "x");
    return plan;
  }
  if (out.is_none()) {
    plan.out = writable_array(x, "x");
    plan.in_place = true;
    plan.result = nb::borrow(x);
    return plan;
  }
  plan.in = read_array(x, "x");
  plan.out = writable_array(out, "out");
  plan.result = nb::borrow(out);
  require_same_order(plan.in, "x", plan.out, "out");
  return plan;
}

// The shape of one rank's share of an array whose leading axis counts the ranks.
Shape share_shape(const Array& x, int size, const char* call) {
  const Shape shape = shape_of(x);
  if (shape.empty() || shape[0] != size) {
    throw InvalidArgument(std::string(call) + " without out= wants x with a leading axis of " +
                          std::to_string(size) + ", one entry a rank; x has shape " +
                          to_string(shape) + ". Reshape it, or give out=");
  }
  return {shape.begin() + 1, shape.end()};
}

Plan<ReduceOptions> plan_reduce_scatter(
    Seat& seat, nb::handle x, nb::handle out, nb::handle op, nb::handle timeout) {
  Plan<ReduceOptions> plan{
      .in = read_array(x, "x"),
      .options = {op_argument(op), duration_argument(timeout, "timeout")},
  };
  require_c_order(plan.in, "x");
  plan.result =
      out.is_none()
          ? new_array_like(plan.in, share_shape(plan.in, seat.comm.size(), "reduce_scatter"))
          : nb::borrow(out);
  plan.out = writable_array(plan.result, "out");
  require_c_order(plan.out, "out");
  if (plan.out.data == plan.in.data && plan.in.count > 0) {
    plan.out = writable_array(x, "x");
    plan.in_place = true;
  }
  return plan;
}

nb::object reproducible_sum(Seat& seat,
                            nb::handle shards,
                            nb::handle out,
                            nb::handle op,
                            nb::handle timeout,
                            nb::handle stream) {
  const auto plan = read_arguments(seat, [&] {
    Plan<ReduceOptions> read{.in = read_array(shards, "shards"),
                             .out = writable_array(out, "out"),
                             .options = {op_argument(op), duration_argument(timeout, "timeout")}};
    require_c_order(read.in, "shards");
    require_c_order(read.out, "out");
    choose_stream(read, stream);
    return read;
  });
  without_gil(
      [&] { seat.comm.reproducible_sum(plan.in.input(), plan.out.output(), plan.options); });
  return nb::borrow(out);
}

}  // namespace

void bind_reductions(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "all_reduce",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle op,
         nb::handle timeout,
         nb::handle stream) {
        return block<AllReduce>(s, stream, [&] { return plan_all_reduce(x, out, op, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("op") = "sum",
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def all_reduce(self, x: Array, out: Optional[Array] = None, op: Op = 'sum', "
              "timeout: Timeout = None, stream: Stream = None) -> Array"),
      R"(Reduce arrays over all ranks; every rank gets the result.

Parameters
----------
x : array
    This rank's elements. All ranks bring as many, of one dtype.
out : array, optional
    Where the result goes, as many elements; without it, into `x`.
op : str
    "sum", "product" (or "prod"), "min", "max", "avg", "band", "bor", "bxor". 16-bit and 8-bit
    floats accumulate in float32; ranks are taken in ascending order.
timeout : float or datetime.timedelta, optional
    Seconds this call may take; by default the communicator's `deadline`.

Returns
-------
array
    `out`, or `x` where there is none.

Raises
------
InvalidArgument
    The array is not contiguous, read-only, of a dtype without this op, ...
Mismatch, PeerDied, DeadlineExceeded, Aborted
    See :mod:`hocket.errors`.
)");
  cls.def(
      "all_reduce_async",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle op,
         nb::handle timeout,
         nb::handle stream) {
        return start<AllReduce>(s, stream, [&] { return plan_all_reduce(x, out, op, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("op") = "sum",
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def all_reduce_async(self, x: Array, out: Optional[Array] = None, op: Op = 'sum', "
              "timeout: Timeout = None, stream: Stream = None) -> Work"),
      "Start an `all_reduce`; the arrays must be left alone until the Work is done.");
  cls.def(
      "prepare_all_reduce",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle op,
         nb::handle timeout,
         nb::handle stream) {
        return prepare<AllReduce>(s, stream, [&] { return plan_all_reduce(x, out, op, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("op") = "sum",
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def prepare_all_reduce(self, x: Array, out: Optional[Array] = None, "
              "op: Op = 'sum', timeout: Timeout = None, stream: Stream = None) -> Prepared"),
      "Check an `all_reduce` once, to call it again and again on the same arrays.");

  cls.def(
      "reduce",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         int root,
         nb::handle op,
         nb::handle timeout,
         nb::handle stream) {
        return block<Reduce>(s, stream, [&] { return plan_reduce(s, x, out, root, op, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("root") = 0,
      arg("op") = "sum",
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def reduce(self, x: Array, out: Optional[Array] = None, root: int = 0, "
              "op: Op = 'sum', timeout: Timeout = None, stream: Stream = None) -> Optional[Array]"),
      R"(Reduce arrays over all ranks; the root alone gets the result.

Parameters
----------
x : array
    This rank's elements. All ranks bring as many, of one dtype.
out : array, optional
    At the root: where the result goes; without it, into `x`. Elsewhere ignored.
root : int
    The rank that gets the result.
op, timeout
    As for `all_reduce`.

Returns
-------
array or None
    The result at the root, None elsewhere.
)");
  cls.def(
      "reduce_async",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         int root,
         nb::handle op,
         nb::handle timeout,
         nb::handle stream) {
        return start<Reduce>(s, stream, [&] { return plan_reduce(s, x, out, root, op, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("root") = 0,
      arg("op") = "sum",
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def reduce_async(self, x: Array, out: Optional[Array] = None, root: int = 0, "
              "op: Op = 'sum', timeout: Timeout = None, stream: Stream = None) -> Work"),
      "Start a `reduce`; the arrays must be left alone until the Work is done.");
  cls.def(
      "prepare_reduce",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         int root,
         nb::handle op,
         nb::handle timeout,
         nb::handle stream) {
        return prepare<Reduce>(
            s, stream, [&] { return plan_reduce(s, x, out, root, op, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("root") = 0,
      arg("op") = "sum",
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def prepare_reduce(self, x: Array, out: Optional[Array] = None, root: int = 0, "
              "op: Op = 'sum', timeout: Timeout = None, stream: Stream = None) -> Prepared"),
      "Check a `reduce` once, to call it again and again on the same arrays.");

  cls.def(
      "reduce_scatter",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle op,
         nb::handle timeout,
         nb::handle stream) {
        return block<ReduceScatter>(
            s, stream, [&] { return plan_reduce_scatter(s, x, out, op, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("op") = "sum",
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def reduce_scatter(self, x: Array, out: Optional[Array] = None, op: Op = 'sum', "
              "timeout: Timeout = None, stream: Stream = None) -> Array"),
      R"(Reduce arrays over all ranks; rank r gets the r-th share of the result.

Parameters
----------
x : array
    The shares of all ranks one after the other, in C order. Without `out` its shape is
    (size, \*share).
out : array, optional
    This rank's share, x.size / size elements; may be the beginning of `x`.
op, timeout
    As for `all_reduce`.

Returns
-------
array
    `out`, or a new array of the shape of a share.
)");
  cls.def(
      "reduce_scatter_async",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle op,
         nb::handle timeout,
         nb::handle stream) {
        return start<ReduceScatter>(
            s, stream, [&] { return plan_reduce_scatter(s, x, out, op, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("op") = "sum",
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def reduce_scatter_async(self, x: Array, out: Optional[Array] = None, "
              "op: Op = 'sum', timeout: Timeout = None, stream: Stream = None) -> Work"),
      "Start a `reduce_scatter`; the arrays must be left alone until the Work is done.");
  cls.def(
      "prepare_reduce_scatter",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle op,
         nb::handle timeout,
         nb::handle stream) {
        return prepare<ReduceScatter>(
            s, stream, [&] { return plan_reduce_scatter(s, x, out, op, timeout); });
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("op") = "sum",
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def prepare_reduce_scatter(self, x: Array, out: Optional[Array] = None, "
              "op: Op = 'sum', timeout: Timeout = None, stream: Stream = None) -> Prepared"),
      "Check a `reduce_scatter` once, to call it again and again on the same arrays.");

  cls.def("reproducible_sum",
          &reproducible_sum,
          arg("shards").none(),
          arg("out").none(),
          arg("op") = "sum",
          arg("timeout") = nb::none(),
          arg("stream") = nb::none(),
          nb::sig("def reproducible_sum(self, shards: Array, out: Array, op: Op = 'sum', "
                  "timeout: Timeout = None, stream: Stream = None) -> Array"),
          R"(Sum shards so that the bits depend on the shards alone.

All ranks bring consecutive shards of one globally numbered list, which are added by a fixed binary
tree over the shard numbers: the result is the same to the last bit however many ranks hold them.

Parameters
----------
shards : array
    This rank's shards one after the other, in C order, each as many elements as `out`; none is
    fine.
out : array
    The sum, on every rank.
op : str
    "sum", or "avg" over the shards.

Returns
-------
array
    `out`.
)");
}

}  // namespace hocket::python
