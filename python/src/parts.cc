// The v-forms: a part of its own size for each rank.
#include "device.h"
#include "part_plans.h"

namespace hocket::python {
namespace {

template <typename Options>
WorkHandle started(PartsPlan<Options>& plan, Work work) {
  WorkHandle handle;
  keep(handle, plan.in, plan.out);
  handle.result = std::move(plan.result);
  handle.work = std::move(work);
  return handle;
}

void bind_gathers(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "all_gather_v",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle counts,
         nb::handle timeout,
         nb::handle stream) {
        auto p = plan_all_gather_v(s, x, out, counts, timeout);
        choose_stream(p, stream);
        without_gil([&] {
          s.comm.all_gather_v(p.in.input(), p.out.output(), {.counts = p.out_counts}, p.options);
        });
        retain(s, p);
        return p.result;
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("counts") = nb::none(),
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def all_gather_v(self, x: Array, out: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, timeout: Timeout = None, stream: Stream = "
              "None) -> Array"),
      R"(Collect every rank's rows, as many as it has, on every rank.

Parameters
----------
x : array
    This rank's rows; beyond the first axis the shape is the same on every rank.
out : array, optional
    Where all rows go, rank after rank.
counts : sequence of int, optional
    Rows of each rank. Without them they are asked for first, by one small call more; all ranks
    give them or none does.

Returns
-------
array
    `out`, or a new array of shape (sum(counts), \*x.shape[1:]).
)");
  cls.def(
      "all_gather_v_async",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle counts,
         nb::handle timeout,
         nb::handle stream) {
        auto p = plan_all_gather_v(s, x, out, counts, timeout);
        choose_stream(p, stream);
        return started(p, without_gil([&] {
                         return s.comm.all_gather_v_async(
                             p.in.input(), p.out.output(), {.counts = p.out_counts}, p.options);
                       }));
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("counts") = nb::none(),
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def all_gather_v_async(self, x: Array, out: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, timeout: Timeout = None, stream: Stream = "
              "None) -> Work"),
      "Start an `all_gather_v`; counts that are not given are still asked for at once.");
  cls.def(
      "gather_v",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle counts,
         int root,
         nb::handle timeout,
         nb::handle stream) {
        auto p = plan_gather_v(s, x, out, counts, root, timeout);
        choose_stream(p, stream);
        without_gil([&] {
          s.comm.gather_v(p.in.input(), p.out.output(), {.counts = p.out_counts}, p.options);
        });
        retain(s, p);
        return p.result;
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("counts") = nb::none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def gather_v(self, x: Array, out: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, root: int = 0, timeout: Timeout = None, "
              "stream: Stream = None) "
              "-> Optional[Array]"),
      R"(Collect every rank's rows, as many as it has, at the root.

Parameters are those of `all_gather_v`; returns None at ranks other than the root.
)");
  cls.def(
      "gather_v_async",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle counts,
         int root,
         nb::handle timeout,
         nb::handle stream) {
        auto p = plan_gather_v(s, x, out, counts, root, timeout);
        choose_stream(p, stream);
        return started(p, without_gil([&] {
                         return s.comm.gather_v_async(
                             p.in.input(), p.out.output(), {.counts = p.out_counts}, p.options);
                       }));
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("counts") = nb::none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def gather_v_async(self, x: Array, out: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, root: int = 0, timeout: Timeout = None, "
              "stream: Stream = None) "
              "-> Work"),
      "Start a `gather_v`; counts that are not given are still asked for at once.");
}

void bind_scatters(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "scatter_v",
      [](Seat& s,
         nb::handle x,
         nb::handle counts,
         nb::handle out,
         int root,
         nb::handle timeout,
         nb::handle stream) {
        auto p = plan_scatter_v(s, x, counts, out, root, timeout);
        choose_stream(p, stream);
        without_gil([&] {
          s.comm.scatter_v(p.in.input(), {.counts = p.in_counts}, p.out.output(), p.options);
        });
        retain(s, p);
        return p.result;
      },
      arg("x").none() = nb::none(),
      arg("counts") = nb::none(),
      arg("out") = nb::none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def scatter_v(self, x: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, out: Optional[Array] = None, "
              "root: int = 0, timeout: Timeout = None, stream: Stream = None) -> Array"),
      R"(Hand the rows of the root's array out, counts[r] of them to rank r.

Parameters
----------
x : array, optional
    At the root: all rows, rank after rank. Elsewhere ignored.
counts : sequence of int, optional
    At the root: rows of each rank; by default as even as it gets, the first ranks having one more.
out : array
    This rank's rows; required at ranks other than the root.

Returns
-------
array
    `out`, or at the root a new array of its rows.
)");
  cls.def(
      "scatter_v_async",
      [](Seat& s,
         nb::handle x,
         nb::handle counts,
         nb::handle out,
         int root,
         nb::handle timeout,
         nb::handle stream) {
        auto p = plan_scatter_v(s, x, counts, out, root, timeout);
        choose_stream(p, stream);
        return started(p, without_gil([&] {
                         return s.comm.scatter_v_async(
                             p.in.input(), {.counts = p.in_counts}, p.out.output(), p.options);
                       }));
      },
      arg("x").none() = nb::none(),
      arg("counts") = nb::none(),
      arg("out") = nb::none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def scatter_v_async(self, x: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, out: Optional[Array] = None, "
              "root: int = 0, timeout: Timeout = None, stream: Stream = None) -> Work"),
      "Start a `scatter_v`; the arrays must be left alone until the Work is done.");
}

void bind_exchanges(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "all_to_all_v",
      [](Seat& s,
         nb::handle x,
         nb::handle counts,
         nb::handle out,
         nb::handle out_counts,
         nb::handle timeout,
         nb::handle stream) {
        auto p = plan_all_to_all_v(s, x, counts, out, out_counts, timeout);
        choose_stream(p, stream);
        without_gil([&] {
          s.comm.all_to_all_v(p.in.input(),
                              {.counts = p.in_counts},
                              p.out.output(),
                              {.counts = p.out_counts},
                              p.options);
        });
        retain(s, p);
        return p.result;
      },
      arg("x").none(),
      arg("counts"),
      arg("out") = nb::none(),
      arg("out_counts") = nb::none(),
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def all_to_all_v(self, x: Array, counts: Sequence[int], "
              "out: Optional[Array] = None, out_counts: Optional[Sequence[int]] = None, "
              "timeout: Timeout = None, stream: Stream = None) -> Array"),
      R"(Send counts[r] rows of `x` to rank r and get rows from each rank.

Parameters
----------
x : array
    The rows for all ranks, rank after rank.
counts : sequence of int
    Rows for each rank.
out : array, optional
    Where the received rows go, rank after rank.
out_counts : sequence of int, optional
    Rows from each rank. Without them they are asked for first; all ranks give them or none does.

Returns
-------
array
    `out`, or a new array of shape (sum(out_counts), \*x.shape[1:]).
)");
  cls.def(
      "all_to_all_v_async",
      [](Seat& s,
         nb::handle x,
         nb::handle counts,
         nb::handle out,
         nb::handle out_counts,
         nb::handle timeout,
         nb::handle stream) {
        auto p = plan_all_to_all_v(s, x, counts, out, out_counts, timeout);
        choose_stream(p, stream);
        return started(p, without_gil([&] {
                         return s.comm.all_to_all_v_async(p.in.input(),
                                                          {.counts = p.in_counts},
                                                          p.out.output(),
                                                          {.counts = p.out_counts},
                                                          p.options);
                       }));
      },
      arg("x").none(),
      arg("counts"),
      arg("out") = nb::none(),
      arg("out_counts") = nb::none(),
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def all_to_all_v_async(self, x: Array, counts: Sequence[int], "
              "out: Optional[Array] = None, out_counts: Optional[Sequence[int]] = None, "
              "timeout: Timeout = None, stream: Stream = None) -> Work"),
      "Start an `all_to_all_v`; counts that are not given are still asked for at once.");
  cls.def(
      "reduce_scatter_v",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle counts,
         nb::handle op,
         nb::handle timeout,
         nb::handle stream) {
        auto p = plan_reduce_scatter_v(s, x, out, counts, op, timeout);
        choose_stream(p, stream);
        without_gil(
            [&] { s.comm.reduce_scatter_v(p.in.input(), p.out.output(), p.in_counts, p.options); });
        return p.result;
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("counts") = nb::none(),
      arg("op") = "sum",
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def reduce_scatter_v(self, x: Array, out: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, op: Op = 'sum', timeout: Timeout = None, "
              "stream: Stream = None) "
              "-> Array"),
      R"(Reduce arrays over all ranks; rank r gets counts[r] rows of the result.

Parameters
----------
x : array
    The rows of all ranks, rank after rank; of one shape on every rank.
out : array, optional
    This rank's rows.
counts : sequence of int, optional
    Rows of each rank. Without them: the rows of every rank's `out`, asked for by one small call
    more; without `out` too, as even as it gets, the first ranks having one more.

Returns
-------
array
    `out`, or a new array of shape (counts[rank], \*x.shape[1:]).
)");
  cls.def(
      "reduce_scatter_v_async",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle counts,
         nb::handle op,
         nb::handle timeout,
         nb::handle stream) {
        auto p = plan_reduce_scatter_v(s, x, out, counts, op, timeout);
        choose_stream(p, stream);
        return started(p, without_gil([&] {
                         return s.comm.reduce_scatter_v_async(
                             p.in.input(), p.out.output(), p.in_counts, p.options);
                       }));
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("counts") = nb::none(),
      arg("op") = "sum",
      arg("timeout") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def reduce_scatter_v_async(self, x: Array, out: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, op: Op = 'sum', timeout: Timeout = None, "
              "stream: Stream = None) "
              "-> Work"),
      "Start a `reduce_scatter_v`; counts that are not given are still asked for at once.");
}

}  // namespace

void bind_parts(CommunicatorClass& cls) {
  bind_gathers(cls);
  bind_scatters(cls);
  bind_exchanges(cls);
}

}  // namespace hocket::python
