// The v-forms: each rank's part has its own size.
#include "part_plans.h"

namespace hocket::python {
namespace {

constexpr Verbs<CallOptions> kAllGatherV{
    [](Communicator& c, const Plan<CallOptions>& p) {
      c.all_gather_v(p.input(), p.output(), p.out_parts(), p.options);
    },
    [](Communicator& c, const Plan<CallOptions>& p) {
      return c.all_gather_v_async(p.input(), p.output(), p.out_parts(), p.options);
    }};
constexpr Verbs<RootOptions> kGatherV{[](Communicator& c, const Plan<RootOptions>& p) {
                                        c.gather_v(p.input(), p.output(), p.out_parts(), p.options);
                                      },
                                      [](Communicator& c, const Plan<RootOptions>& p) {
                                        return c.gather_v_async(
                                            p.input(), p.output(), p.out_parts(), p.options);
                                      }};
constexpr Verbs<RootOptions> kScatterV{
    [](Communicator& c, const Plan<RootOptions>& p) {
      c.scatter_v(p.input(), p.in_parts(), p.output(), p.options);
    },
    [](Communicator& c, const Plan<RootOptions>& p) {
      return c.scatter_v_async(p.input(), p.in_parts(), p.output(), p.options);
    }};
constexpr Verbs<CallOptions> kAllToAllV{
    [](Communicator& c, const Plan<CallOptions>& p) {
      c.all_to_all_v(p.input(), p.in_parts(), p.output(), p.out_parts(), p.options);
    },
    [](Communicator& c, const Plan<CallOptions>& p) {
      return c.all_to_all_v_async(p.input(), p.in_parts(), p.output(), p.out_parts(), p.options);
    }};
constexpr Verbs<ReduceOptions> kReduceScatterV{
    [](Communicator& c, const Plan<ReduceOptions>& p) {
      c.reduce_scatter_v(p.input(), p.output(), p.in_counts, p.options);
    },
    [](Communicator& c, const Plan<ReduceOptions>& p) {
      return c.reduce_scatter_v_async(p.input(), p.output(), p.in_counts, p.options);
    }};

}  // namespace

void bind_parts(CommunicatorClass& cls) {
  using nb::arg;
  const nb::none none;
  define(cls,
         kAllGatherV,
         {"all_gather_v",
          "x: Array, "
          "out: Union[Array, Sequence[Array], None] = None, "
          "counts: Optional[Sequence[int]] = None",
          "Array",
          R"(Collect every rank's rows, as many as it has, on every rank: uneven parts.

Parameters
----------
x : array
    This rank's rows; beyond the first axis the shape is the same on every rank.
out : array or list of arrays, optional
    Where all rows go, rank after rank. A list has an array for each rank, each of its own in C
    order and in host memory; nothing is copied in between.
counts : sequence of int, optional
    Rows of each rank. Without them they are asked for first, by one small call more that
    `all_gather_v_async` waits for; all ranks give them or none does.

Returns
-------
array
    `out`, or a new array of shape (sum(counts), \*x.shape[1:]).
)"},
         &plan_all_gather_v,
         arg("x").none(),
         arg("out") = none,
         arg("counts") = none);
  define(cls,
         kGatherV,
         {"gather_v",
          "x: Array, "
          "out: Union[Array, Sequence[Array], None] = None, "
          "counts: Optional[Sequence[int]] = None, root: int = 0",
          "Optional[Array]",
          R"(Collect every rank's rows, as many as it has, at the root: uneven parts.

Parameters are those of `all_gather_v`; `out` matters at the root alone, and elsewhere None is
returned.
)"},
         &plan_gather_v,
         arg("x").none(),
         arg("out") = none,
         arg("counts") = none,
         arg("root").none() = 0);
  define(cls,
         kScatterV,
         {"scatter_v",
          "x: Union[Array, Sequence[Array], None] = None, "
          "out: Optional[Array] = None, "
          "counts: Optional[Sequence[int]] = None, root: int = 0",
          "Array",
          R"(Hand the rows of the root's array out, counts[r] of them to rank r: uneven parts.

Parameters
----------
x : array or list of arrays, optional
    At the root: all rows, rank after rank, or a list of arrays, one a rank. Elsewhere ignored.
out : array
    This rank's rows; required at ranks other than the root.
counts : sequence of int, optional
    At the root: rows of each rank; by default as even as it gets, the first ranks having one more.
    Of a list: elements; by default what its arrays have.

Returns
-------
array
    `out`, or at the root a new array of its rows.
)"},
         &plan_scatter_v,
         arg("x") = none,
         arg("out") = none,
         arg("counts") = none,
         arg("root").none() = 0);
  define(cls,
         kAllToAllV,
         {"all_to_all_v",
          "x: Union[Array, Sequence[Array]], counts: Optional[Sequence[int]] = None, "
          "out: Union[Array, Sequence[Array], None] = None, out_counts: Optional[Sequence[int]] = "
          "None",
          "Array",
          R"(Send counts[r] rows of `x` to rank r and get rows from each rank.

Parameters
----------
x : array or list of arrays
    The rows for all ranks, rank after rank; or an array for each rank, in host memory.
counts : sequence of int
    Rows for each rank. Of a list: elements; by default what its arrays have.
out : array or list of arrays, optional
    Where the received rows go, rank after rank; or an array for each rank.
out_counts : sequence of int, optional
    Rows from each rank. Without them they are asked for first; all ranks give them or none does.

Returns
-------
array
    `out`, or a new array of shape (sum(out_counts), \*x.shape[1:]).
)"},
         &plan_all_to_all_v,
         arg("x").none(),
         arg("counts") = none,
         arg("out") = none,
         arg("out_counts") = none);
  define(cls,
         kReduceScatterV,
         {"reduce_scatter_v",
          "x: Array, "
          "out: Optional[Array] = None, "
          "counts: Optional[Sequence[int]] = None, op: Op = 'sum'",
          "Array",
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
)"},
         &plan_reduce_scatter_v,
         arg("x").none(),
         arg("out") = none,
         arg("counts") = none,
         arg("op").none() = "sum");
}

}  // namespace hocket::python
