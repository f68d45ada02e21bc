// The v-forms of collectives: the parts of the ranks may differ in size.
#include "docstrings.h"
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
          docstring_of("Communicator.all_gather_v")},
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
          docstring_of("Communicator.gather_v")},
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
          docstring_of("Communicator.scatter_v")},
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
          docstring_of("Communicator.all_to_all_v")},
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
          docstring_of("Communicator.reduce_scatter_v")},
         &plan_reduce_scatter_v,
         arg("x").none(),
         arg("out") = none,
         arg("counts") = none,
         arg("op").none() = "sum");
}

}  // namespace hocket::python
