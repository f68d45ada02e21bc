// Symmetric memory as NumPy arrays.
//
// That an array is symmetric is known by its address, in C++; here it is a NumPy array like any
// other, whose base keeps the memory alive.
#include "hocket/symmetric.h"

#include <cstdint>
#include <memory>
#include <string>

#include "hocket/error.h"
#include "seat.h"

namespace hocket::python {
namespace {

// What `comm.symmetric` is.
struct Symmetric {
  Seat seat;
};

// The base of a symmetric NumPy array.
struct Allocation {
  SymmetricArray array;
};

Shape shape_argument(nb::handle shape) {
  Shape result;
  if (PyLong_Check(shape.ptr())) {
    result.push_back(nb::cast<std::ptrdiff_t>(shape));
  } else {
    for (nb::handle extent : shape) result.push_back(nb::cast<std::ptrdiff_t>(nb::int_(extent)));
  }
  for (const std::ptrdiff_t extent : result) {
    if (extent < 0)
      throw InvalidArgument("shape is " + to_string(result) + "; no extent is negative");
  }
  return result;
}

std::size_t count_of(const Shape& shape) {
  std::size_t count = 1;
  for (const std::ptrdiff_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

nb::object empty(Symmetric& symmetric, nb::handle shape, nb::handle dtype, nb::handle timeout) {
  Seat& seat = symmetric.seat;
  const Shape extents = shape_argument(shape);
  const DType type = dtype_argument(dtype);
  const CallOptions options{duration_argument(timeout, "timeout")};
  SymmetricArray array =
      without_gil([&] { return seat.comm.symmetric().empty(count_of(extents), type, options); });
  void* data = array.local().data();
  const nb::object owner = nb::cast(Allocation{std::move(array)});
  return numpy_view(data, type, extents, owner);
}

// The allocation at the end of an array's chain of bases.
nb::object allocation_of(nb::handle array) {
  nb::object base = nb::borrow(array);
  while (!nb::isinstance<Allocation>(base)) {
    if (!nb::hasattr(base, "base") || base.attr("base").is_none()) {
      throw InvalidArgument(
          "array is not symmetric; peer wants one made by symmetric.empty, or a "
          "view of such");
    }
    base = base.attr("base");
  }
  return base;
}

nb::object peer(Symmetric& /*symmetric*/, nb::handle array, int rank) {
  const Array view = read_array(array, "array");
  require_c_order(view, "array");
  const nb::object owner = allocation_of(array);
  const SymmetricArray& memory = nb::cast<Allocation&>(owner).array;
  const auto offset =
      static_cast<std::byte*>(view.data) - static_cast<std::byte*>(memory.local().data());
  auto* data = static_cast<std::byte*>(memory.peer(rank).data()) + offset;
  return numpy_view(data, view.dtype, shape_of(view), owner);
}

}  // namespace

void bind_symmetric(nb::module_& module, CommunicatorClass& cls) {
  using nb::arg;
  nb::class_<Allocation>(module, "_Allocation", "Symmetric memory; the base of arrays in it.");
  nb::class_<Symmetric>(
      module, "SymmetricMemory", R"(Makes arrays that every rank of a communicator can reach.

Collectives on such arrays, or on slices of them, copy nothing: ranks read and write each other's
memory directly. After an error the contents are undefined.
)")
      .def("empty",
           &empty,
           arg("shape"),
           arg("dtype") = "float64",
           arg("timeout") = nb::none(),
           nb::sig("def empty(self, shape: Union[int, Sequence[int]], dtype: Any = 'float64', "
                   "timeout: Timeout = None) -> NDArray[Any]"),
           R"(Make a zeroed array on every rank.

Collective: all ranks give the same shape and dtype.

Parameters
----------
shape : int or sequence of int
dtype : str or dtype
    "float32", numpy.float32, torch.bfloat16, ...; "bfloat16" and the 8-bit floats need ml_dtypes.

Returns
-------
numpy.ndarray
    Its memory lives until the last rank has dropped the last view of it.
)")
      .def("peer",
           &peer,
           arg("array"),
           arg("rank"),
           nb::sig("def peer(self, array: NDArray[Any], rank: int) -> NDArray[Any]"),
           R"(The array of another rank, as memory that can be read and written here.

Parameters
----------
array : numpy.ndarray
    This rank's array, or a contiguous view of it.
rank : int
    The rank, in the communicator that made the array.

Returns
-------
numpy.ndarray
    Of the same shape. What it holds is defined only between calls that order the ranks (a barrier,
    a collective).
)");
  cls.def_prop_ro(
      "symmetric",
      [](Seat& s) {
        return Symmetric{{Communicator(s.comm.impl()), s.world}};
      },
      nb::sig("def symmetric(self) -> SymmetricMemory"),
      "Makes arrays that peers can reach, so that collectives on them copy nothing.");
}

}  // namespace hocket::python
