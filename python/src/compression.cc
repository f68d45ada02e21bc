// Reductions for slow networks.
#include "hocket/compression.h"

#include "device.h"
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
  cls.def(
      "compressed_all_reduce",
      &compressed,
      arg("x").none(),
      arg("op").none() = "sum",
      arg("deadline") = nb::none(),
      nb::sig("def compressed_all_reduce(self, x: ArrayT, op: Op = 'sum', "
              "deadline: Timeout = None) -> ArrayT"),
      R"(Sum or average floats over all ranks, of which 8 bits an element travel; for slow networks.

The result is the same on every rank. It is off by at most R / 254 for a sum, and that divided by
the number of ranks for an average, where R is the sum over the ranks of (greatest - least) of the
block that an element lies in, besides the rounding of float32, to which float64 is taken. Blocks
have 1024 elements, counted from the beginning of each rank's share of ceil(x.size / size). Those
with an infinity or a NaN become NaN.

Parameters
----------
x : array
    Of float16, bfloat16, float32 or float64; reduced in place. On a GPU it is copied to the host and
    back, behind what its framework's current stream has.
op : str
    "sum" or "avg".
deadline : float or datetime.timedelta, optional
    Seconds that each of its two steps may take.

Returns
-------
array
    `x`.
)");
  cls.def("hierarchical_all_reduce",
          &hierarchical,
          arg("x").none(),
          arg("op").none() = "sum",
          arg("compressed").none() = false,
          arg("deadline") = nb::none(),
          nb::sig("def hierarchical_all_reduce(self, x: ArrayT, op: Op = 'sum', "
                  "compressed: bool = False, deadline: Timeout = None) -> ArrayT"),
          R"(Reduce within each host, between the hosts' first ranks, and back, in place.

Every rank counts alike in an average, however many its host has.

Parameters
----------
x : array
    On a GPU it is copied to the host and back, behind what its framework's current stream has.
op : str
    As for `all_reduce`.
compressed : bool
    8 bits an element between the hosts, as in `compressed_all_reduce`, with its bound for hosts in
    place of ranks.
deadline : float or datetime.timedelta, optional
    Seconds that each of the steps may take.

Returns
-------
array
    `x`.
)");
}

}  // namespace hocket::python
