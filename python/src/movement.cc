// Collectives that move data, and barrier.
#include "docstrings.h"
#include "hocket/error.h"
#include "verbs.h"

namespace hocket::python {
namespace {

constexpr auto kBroadcast = regular_verbs<RootOptions,
                                          &Communicator::broadcast,
                                          &Communicator::broadcast_async,
                                          &Communicator::prepare_broadcast>();
constexpr auto kAllGather = regular_verbs<CallOptions,
                                          &Communicator::all_gather,
                                          &Communicator::all_gather_async,
                                          &Communicator::prepare_all_gather>();
constexpr auto kGather = regular_verbs<RootOptions,
                                       &Communicator::gather,
                                       &Communicator::gather_async,
                                       &Communicator::prepare_gather>();
constexpr auto kScatter = regular_verbs<RootOptions,
                                        &Communicator::scatter,
                                        &Communicator::scatter_async,
                                        &Communicator::prepare_scatter>();
constexpr auto kAllToAll = regular_verbs<CallOptions,
                                         &Communicator::all_to_all,
                                         &Communicator::all_to_all_async,
                                         &Communicator::prepare_all_to_all>();

// Returns the shape of `size` arrays like `x`, stacked along a new first axis.
Shape stacked_shape(const Array& x, int size) {
  Shape shape = shape_of(x);
  shape.insert(shape.begin(), size);
  return shape;
}

// Sets the output to `out`. If `out` is None, sets it to a new array like `plan.in` with the shape
// that `shape` returns. The calls that use this require C order.
template <typename Options, typename ShapeOf>
void read_output(Plan<Options>& plan, nb::handle out, ShapeOf&& shape) {
  plan.result = out.is_none() ? new_array_like(plan.in, shape()) : nb::borrow(out);
  plan.out = read_out<Options>(plan.result);
  require_c_order(plan.out, "out");
}

Array read_c_order(nb::handle x) {
  Array array = read_array(x, "x");
  require_c_order(array, "x");
  return array;
}

Plan<RootOptions> plan_broadcast(CommunicatorObject& self,
                                 nb::handle x,
                                 nb::handle root,
                                 nb::handle deadline) {
  return read_arguments(self, [&] {
    Plan<RootOptions> plan{.out = read_array(x, "x"),
                           .in_place = true,
                           .options = root_options(root, deadline),
                           .result = nb::borrow(x)};
    // The root's array is only read, so it may be immutable.
    if (self.comm.rank() != plan.options.root) write_in_place(plan, x);
    plan.in_place = true;
    return plan;
  });
}

Plan<CallOptions> plan_all_gather(CommunicatorObject& self,
                                  nb::handle x,
                                  nb::handle out,
                                  nb::handle deadline) {
  return read_arguments(self, [&] {
    Plan<CallOptions> plan{.in = read_c_order(x),
                           .options = {limit_argument(deadline, "deadline")}};
    read_output(plan, out, [&] { return stacked_shape(plan.in, self.comm.size()); });
    return plan;
  });
}

Plan<RootOptions> plan_gather(
    CommunicatorObject& self, nb::handle x, nb::handle out, nb::handle root, nb::handle deadline) {
  return read_arguments(self, [&] {
    Plan<RootOptions> plan{.in = read_c_order(x), .options = root_options(root, deadline)};
    if (self.comm.rank() == plan.options.root) {
      read_output(plan, out, [&] { return stacked_shape(plan.in, self.comm.size()); });
    }
    return plan;
  });
}

// Returns the shape of the part that each rank gets of the root's array.
Shape entry_shape(const Array& x, int size) {
  const Shape shape = shape_of(x);
  if (shape.empty() || shape[0] != size) {
    throw InvalidArgument("scatter without out= wants x with a leading axis of " +
                          std::to_string(size) + ", one entry a rank; x has shape " +
                          to_string(shape) + ". " + mend_of_axis(x, size));
  }
  return {shape.begin() + 1, shape.end()};
}

Plan<RootOptions> plan_scatter(
    CommunicatorObject& self, nb::handle x, nb::handle out, nb::handle root, nb::handle deadline) {
  return read_arguments(self, [&] {
    Plan<RootOptions> plan{.options = root_options(root, deadline)};
    if (self.comm.rank() == plan.options.root) {
      plan.in = read_c_order(x);
    } else if (out.is_none()) {
      refuse_without_out("scatter", plan.options.root, self.comm.size());
    }
    read_output(plan, out, [&] { return entry_shape(plan.in, self.comm.size()); });
    return plan;
  });
}

Plan<CallOptions> plan_all_to_all(CommunicatorObject& self,
                                  nb::handle x,
                                  nb::handle out,
                                  nb::handle deadline) {
  return read_arguments(self, [&] {
    Plan<CallOptions> plan{.in = read_c_order(x),
                           .options = {limit_argument(deadline, "deadline")}};
    read_output(plan, out, [&] { return shape_of(plan.in); });
    return plan;
  });
}

CallOptions barrier_options(CommunicatorObject& self, nb::handle deadline, nb::handle stream) {
  return read_arguments(self, [&] {
    return CallOptions{limit_argument(deadline, "deadline"), stream_argument(stream)};
  });
}

void bind_barrier(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "barrier",
      [](CommunicatorObject& s, nb::handle deadline, nb::handle stream) {
        const CallOptions options = barrier_options(s, deadline, stream);
        without_gil([&] { s.comm.barrier(options); });
      },
      arg("deadline") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def barrier(self, deadline: Timeout = None, stream: Stream = None) -> None"),
      docstring_of("Communicator.barrier"));
  cls.def(
      "barrier_async",
      [](CommunicatorObject& s, nb::handle deadline, nb::handle stream) {
        const CallOptions options = barrier_options(s, deadline, stream);
        WorkHandle handle{.result = nb::none()};
        handle.work = without_gil([&] { return s.comm.barrier_async(options); });
        handle.call = "barrier";
        return handle;
      },
      arg("deadline") = nb::none(),
      arg("stream") = nb::none(),
      nb::sig("def barrier_async(self, deadline: Timeout = None, stream: Stream = None) -> Work"),
      "Start a `barrier`.");
}

}  // namespace

void bind_movement(CommunicatorClass& cls) {
  using nb::arg;
  const nb::none none;
  define(
      cls,
      kBroadcast,
      {"broadcast", "x: ArrayT, root: int = 0", "ArrayT", docstring_of("Communicator.broadcast")},
      &plan_broadcast,
      arg("x").none(),
      arg("root").none() = 0);
  define(cls,
         kAllGather,
         {"all_gather",
          "x: ArrayT, out: Optional[ArrayT] = None",
          "ArrayT",
          docstring_of("Communicator.all_gather")},
         &plan_all_gather,
         arg("x").none(),
         arg("out") = none);
  define(cls,
         kGather,
         {"gather",
          "x: ArrayT, out: Optional[ArrayT] = None, root: int = 0",
          "Optional[ArrayT]",
          docstring_of("Communicator.gather")},
         &plan_gather,
         arg("x").none(),
         arg("out") = none,
         arg("root").none() = 0);
  define(cls,
         kScatter,
         {"scatter",
          "x: Optional[ArrayT] = None, out: Optional[ArrayT] = None, root: int = 0",
          "ArrayT",
          docstring_of("Communicator.scatter")},
         &plan_scatter,
         arg("x") = none,
         arg("out") = none,
         arg("root").none() = 0);
  define(cls,
         kAllToAll,
         {"all_to_all",
          "x: ArrayT, out: Optional[ArrayT] = None",
          "ArrayT",
          docstring_of("Communicator.all_to_all")},
         &plan_all_to_all,
         arg("x").none(),
         arg("out") = none);
  bind_barrier(cls);
}

}  // namespace hocket::python
