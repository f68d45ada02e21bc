// Collectives that reduce: all_reduce, reduce, scan, exscan, reduce_scatter, reproducible_sum.
#include "docstrings.h"
#include "hocket/error.h"
#include "own_operator.h"
#include "verbs.h"

namespace hocket::python {
namespace {

// The options of a reduction, and its operator if the user defined it.
template <typename Public>
struct WithOwn : Public {
  using Base = Public;
  std::shared_ptr<OwnOperator> own = {};
};
using OwnReduceOptions = WithOwn<ReduceOptions>;
using OwnReduceRootOptions = WithOwn<ReduceRootOptions>;

template <typename Options>
OperatorOptions operator_options(const Options& options) {
  if constexpr (std::is_same_v<Options, OwnReduceRootOptions>) {
    return {.root = options.root, .deadline = options.deadline};
  } else {
    return {.deadline = options.deadline};
  }
}

// A C++ function that reduces with a user-defined operator.
template <typename Result, typename In = BorrowedView>
using OwnVerb = Result (*)(Communicator&, In, ArrayView, const Operator&, const OperatorOptions&);

// Like regular_verbs. The functions `kOwn...` are called for user-defined operators.
template <
    typename Options,
    void (Communicator::*kBlock)(ConstArrayView, ArrayView, const typename Options::Base&),
    Work (Communicator::*kStart)(BorrowedView, ArrayView, const typename Options::Base&),
    Prepared (Communicator::*kPrepare)(BorrowedView, ArrayView, const typename Options::Base&),
    OwnVerb<void, ConstArrayView> kOwnBlock,
    OwnVerb<Work> kOwnStart,
    OwnVerb<Prepared> kOwnPrepare>
constexpr Verbs<Options> verbs_of() {
  using P = Plan<Options>;
  return {[](Communicator& c, const P& p) {
            if (!p.options.own) return (c.*kBlock)(p.input(), p.output(), p.options);
            p.options.own->explain([&] {
              kOwnBlock(c, p.input(), p.output(), p.options.own->op(), operator_options(p.options));
            });
          },
          [](Communicator& c, const P& p) {
            if (!p.options.own) return (c.*kStart)(p.input(), p.output(), p.options);
            return kOwnStart(
                c, p.input(), p.output(), p.options.own->op(), operator_options(p.options));
          },
          [](Communicator& c, const P& p) {
            if (!p.options.own) return (c.*kPrepare)(p.input(), p.output(), p.options);
            return kOwnPrepare(
                c, p.input(), p.output(), p.options.own->op(), operator_options(p.options));
          }};
}

constexpr auto kAllReduce = verbs_of<OwnReduceOptions,
                                     &Communicator::all_reduce,
                                     &Communicator::all_reduce_async,
                                     &Communicator::prepare_all_reduce,
                                     &all_reduce,
                                     &all_reduce_async,
                                     &prepare_all_reduce>();
constexpr auto kReduce = verbs_of<OwnReduceRootOptions,
                                  &Communicator::reduce,
                                  &Communicator::reduce_async,
                                  &Communicator::prepare_reduce,
                                  &reduce,
                                  &reduce_async,
                                  &prepare_reduce>();
constexpr auto kScan = verbs_of<OwnReduceOptions,
                                &Communicator::scan,
                                &Communicator::scan_async,
                                &Communicator::prepare_scan,
                                &scan,
                                &scan_async,
                                &prepare_scan>();
constexpr auto kExscan = verbs_of<OwnReduceOptions,
                                  &Communicator::exscan,
                                  &Communicator::exscan_async,
                                  &Communicator::prepare_exscan,
                                  &exscan,
                                  &exscan_async,
                                  &prepare_exscan>();
constexpr auto kReduceScatter = verbs_of<OwnReduceOptions,
                                         &Communicator::reduce_scatter,
                                         &Communicator::reduce_scatter_async,
                                         &Communicator::prepare_reduce_scatter,
                                         &reduce_scatter,
                                         &reduce_scatter_async,
                                         &prepare_reduce_scatter>();

template <typename Options>
void read_op(Options& options, nb::handle op) {
  options.own = OwnOperator::of(op);
  if (!options.own) options.op = op_argument(op);
}

// Reads the arrays of a reduction whose result has the shape of its input.
template <typename Options>
void read_alike(Plan<Options>& plan, nb::handle x, nb::handle out) {
  if (out.is_none()) {
    plan.out = read_array(x, "x");
    plan.in_place = true;
    plan.result = nb::borrow(x);
    return write_in_place(plan, x);
  }
  plan.in = read_array(x, "x");
  plan.out = read_out<Options>(out);
  plan.result = nb::borrow(out);
  require_same_order(plan.in, "x", plan.out, "out");
}

Plan<OwnReduceOptions> plan_alike(
    CommunicatorObject& self, nb::handle x, nb::handle out, nb::handle op, nb::handle deadline) {
  return read_arguments(self, [&] {
    Plan<OwnReduceOptions> plan;
    read_op(plan.options, op);
    plan.options.deadline = limit_argument(deadline, "deadline");
    read_alike(plan, x, out);
    if (plan.options.own) plan.options.own->fit(plan.in_place ? plan.out : plan.in, "x");
    return plan;
  });
}

Plan<OwnReduceRootOptions> plan_reduce(CommunicatorObject& self,
                                       nb::handle x,
                                       nb::handle out,
                                       nb::handle root,
                                       nb::handle op,
                                       nb::handle deadline) {
  return read_arguments(self, [&] {
    Plan<OwnReduceRootOptions> plan;
    read_op(plan.options, op);
    plan.options.root = integer_argument(root, "root");
    plan.options.deadline = limit_argument(deadline, "deadline");
    if (self.comm.rank() == plan.options.root) {
      read_alike(plan, x, out);
    } else {
      plan.in = read_array(x, "x");
    }
    if (plan.options.own) plan.options.own->fit(plan.in_place ? plan.out : plan.in, "x");
    return plan;
  });
}

// Returns the shape of one rank's share of `x`. The first axis has one entry for each rank, or its
// length is a multiple of the number of ranks.
Shape share_shape(const Array& x, int size) {
  Shape shape = shape_of(x);
  if (shape.empty() || shape[0] % size != 0) {
    throw InvalidArgument("reduce_scatter without out= wants x with a leading axis of " +
                          std::to_string(size) +
                          ", one entry a rank, or a multiple of that; x has "
                          "shape " +
                          to_string(shape) + ". " + mend_of_axis(x, size));
  }
  if (shape[0] == size && shape.size() > 1) return {shape.begin() + 1, shape.end()};
  shape[0] /= size;
  return shape;
}

Plan<OwnReduceOptions> plan_reduce_scatter(
    CommunicatorObject& self, nb::handle x, nb::handle out, nb::handle op, nb::handle deadline) {
  return read_arguments(self, [&] {
    Plan<OwnReduceOptions> plan{.in = read_array(x, "x")};
    read_op(plan.options, op);
    plan.options.deadline = limit_argument(deadline, "deadline");
    require_c_order(plan.in, "x");
    plan.result = out.is_none() ? new_array_like(plan.in, share_shape(plan.in, self.comm.size()))
                                : nb::borrow(out);
    plan.out = writable_array(plan.result, "out");
    require_c_order(plan.out, "out");
    if (plan.options.own) plan.options.own->fit(plan.out, "out");
    return plan;
  });
}

nb::object reproducible_sum(CommunicatorObject& self,
                            nb::handle shards,
                            nb::handle out,
                            nb::handle op,
                            nb::handle deadline,
                            nb::handle stream) {
  const auto plan = read_arguments(self, [&] {
    if (out.is_none()) {
      throw InvalidArgument(
          "out is missing, the array for the sum: how many elements a shard has follows from it");
    }
    Plan<ReduceOptions> read{.in = read_array(shards, "shards"),
                             .out = writable_array(out, "out"),
                             .options = {op_argument(op), limit_argument(deadline, "deadline")}};
    require_c_order(read.in, "shards");
    require_c_order(read.out, "out");
    choose_stream(read, stream);
    return read;
  });
  without_gil([&] { self.comm.reproducible_sum(plan.input(), plan.output(), plan.options); });
  return nb::borrow(out);
}

void bind_reproducible_sum(CommunicatorClass& cls) {
  using nb::arg;
  cls.def("reproducible_sum",
          &reproducible_sum,
          arg("shards").none(),
          arg("out").none() = nb::none(),
          arg("op").none() = "sum",
          arg("deadline") = nb::none(),
          arg("stream") = nb::none(),
          nb::sig("def reproducible_sum(self, shards: Array, out: ArrayT, op: Op = 'sum', "
                  "deadline: Timeout = None, stream: Stream = None) -> ArrayT"),
          docstring_of("Communicator.reproducible_sum"));
}

}  // namespace

void bind_reductions(CommunicatorClass& cls) {
  using nb::arg;
  const nb::none none;
  define(cls,
         kAllReduce,
         {"all_reduce",
          "x: ArrayT, out: Optional[ArrayT] = None, op: Union[Op, Operator] = 'sum'",
          "ArrayT",
          docstring_of("Communicator.all_reduce")},
         &plan_alike,
         arg("x").none(),
         arg("out") = none,
         arg("op").none() = "sum");
  define(cls,
         kReduce,
         {"reduce",
          "x: ArrayT, out: Optional[ArrayT] = None, root: int = 0, op: Union[Op, Operator] = 'sum'",
          "Optional[ArrayT]",
          docstring_of("Communicator.reduce")},
         &plan_reduce,
         arg("x").none(),
         arg("out") = none,
         arg("root").none() = 0,
         arg("op").none() = "sum");
  define(cls,
         kScan,
         {"scan",
          "x: ArrayT, out: Optional[ArrayT] = None, op: Union[Op, Operator] = 'sum'",
          "ArrayT",
          docstring_of("Communicator.scan")},
         &plan_alike,
         arg("x").none(),
         arg("out") = none,
         arg("op").none() = "sum");
  define(cls,
         kExscan,
         {"exscan",
          "x: ArrayT, out: Optional[ArrayT] = None, op: Union[Op, Operator] = 'sum'",
          "ArrayT",
          docstring_of("Communicator.exscan")},
         &plan_alike,
         arg("x").none(),
         arg("out") = none,
         arg("op").none() = "sum");
  define(cls,
         kReduceScatter,
         {"reduce_scatter",
          "x: ArrayT, out: Optional[ArrayT] = None, op: Union[Op, Operator] = 'sum'",
          "ArrayT",
          docstring_of("Communicator.reduce_scatter")},
         &plan_reduce_scatter,
         arg("x").none(),
         arg("out") = none,
         arg("op").none() = "sum");
  bind_reproducible_sum(cls);
}

}  // namespace hocket::python
