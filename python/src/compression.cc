// Compressed reductions, for slow networks.
#include "hocket/compression.h"

#include "device.h"
#include "docstrings.h"
#include "verbs.h"

namespace hocket::python {
namespace {

nb::object compressed(CommunicatorObject& self, nb::handle x, nb::handle op, nb::handle deadline) {
  ReduceOptions options;
  const Array array = read_arguments(self, [&] {
    options.op = op_argument(op);
    options.deadline = limit_argument(deadline, "deadline");
    Array read = writable_array(x, "x");
    options.stream = stream_of(nb::none(), read, {});
    return read;
  });
  without_gil([&] { compressed_all_reduce(self.comm, array.output(), options); });
  return nb::borrow(x);
}

nb::object hierarchical(CommunicatorObject& self,
                        nb::handle x,
                        nb::handle op,
                        nb::handle is_compressed,
                        nb::handle deadline) {
  HierarchicalOptions options;
  const auto read = [&] {
    options.op = op_argument(op);
    options.deadline = limit_argument(deadline, "deadline");
    if (flag_argument(is_compressed, "compressed")) options.between = BetweenNodes::kCompressed;
    Array array = writable_array(x, "x");
    options.stream = stream_of(nb::none(), array, {});
    return array;
  };
  const Array array = read_arguments(self, read, &refuse_hierarchical_all_reduce);
  without_gil([&] { hierarchical_all_reduce(self.comm, array.output(), options); });
  return nb::borrow(x);
}

}  // namespace

void bind_compression(CommunicatorClass& cls) {
  using nb::arg;
  cls.def("compressed_all_reduce",
          &compressed,
          arg("x").none(),
          arg("op").none() = "sum",
          arg("deadline") = nb::none(),
          nb::sig("def compressed_all_reduce(self, x: ArrayT, op: Op = 'sum', "
                  "deadline: Timeout = None) -> ArrayT"),
          docstring_of("Communicator.compressed_all_reduce"));
  cls.def("hierarchical_all_reduce",
          &hierarchical,
          arg("x").none(),
          arg("op").none() = "sum",
          arg("compressed").none() = false,
          arg("deadline") = nb::none(),
          nb::sig("def hierarchical_all_reduce(self, x: ArrayT, op: Op = 'sum', "
                  "compressed: bool = False, deadline: Timeout = None) -> ArrayT"),
          docstring_of("Communicator.hierarchical_all_reduce"));
}

}  // namespace hocket::python
