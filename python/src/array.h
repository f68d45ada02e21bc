// Arrays as Python passes them: address, number and type of the elements.
//
// NumPy arrays are read through NumPy's own structs, which takes a few loads. All other arrays
// (PyTorch, JAX, anything with DLPack or the buffer protocol) go through `foreign.h`.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/array_view.h"
#include "hocket/stream.h"

namespace hocket::python {

namespace nb = nanobind;

// Keeps the memory of an `Array` valid. It holds an export of foreign memory (a DLPack tensor, a
// buffer), or owns memory that stands in for the array. It is destroyed with the GIL held.
class Lease {
 public:
  Lease() noexcept = default;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  virtual ~Lease() = default;
  // Copies received data from the memory that stands in to a strided array; see strided.h.
  virtual void copy_back() {}
};

// A resource: an argument seen as contiguous memory. It borrows the Python object, so code that
// keeps an Array beyond the call keeps the object, too. Made and destroyed under the GIL.
struct Array {
  void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::kUInt8;
  MemoryOrder order = MemoryOrder::kAny;
  bool writable = false;
  nb::handle object = {};
  std::unique_ptr<Lease> lease = {};
  // Set for memory of a GPU: the GPU's number (kAnyDevice: the driver knows it), and the current
  // stream of the array's framework.
  MemoryKind memory = MemoryKind::kHost;
  int device = kAnyDevice;
  std::optional<StreamRef> stream = {};
  // True if work on the array may be under way on `stream`. A call on another stream must wait for
  // it.
  bool is_at_work = false;

  bool is_on_gpu() const noexcept { return memory == MemoryKind::kCuda; }
  ConstArrayView input() const noexcept { return output(); }
  ArrayView output() const noexcept {
    return ArrayView(data, count, dtype, memory, device).in_order(order);
  }
};

// Reads the array of an argument. `name` is the argument's, for messages. Throws InvalidArgument if
// the object is no array, is not contiguous, or has a type that hocket does not support.
Array read_array(nb::handle object, const char* name);
// Reads an array that the call writes to. Throws InvalidArgument also if the array is read-only.
Array writable_array(nb::handle object, const char* name);

// Returns advice for an error message: make the call with a copy of the array, which the expression
// `made` creates, and then copy the result back by the statement `brought_back`. If `brought_back`
// is empty, the advice is an assignment.
std::string by_way_of_copy(const std::string& made,
                           const char* name,
                           std::string brought_back = {});

// Throws InvalidArgument if the elements lie in Fortran order. Calls that split the array need C
// order.
void require_c_order(const Array& array, const char* name);
// Throws InvalidArgument if one array is in C order and the other in Fortran order.
void require_same_order(const Array& a, const char* a_name, const Array& b, const char* b_name);

using Shape = std::vector<std::ptrdiff_t>;
Shape shape_of(const Array& array);
std::string to_string(const Shape& shape);
nb::tuple tuple_of(const Shape& shape);

// Returns a new array of the framework, dtype and order of `like`. PyTorch, CuPy and Numba get
// arrays of their own type. JAX gets memory that `finished` (immutable.h) turns into an array after
// the call has written it. For other arrays in host memory, the new array is NumPy's.
nb::object new_array_like(const Array& like, const Shape& shape);
// Returns a new int32 array of the shape and order of `like`, in the same memory. On the host it is
// NumPy's.
nb::object new_int32_beside(const Array& like);
// Returns a new NumPy array in C order.
nb::object new_numpy_array(DType dtype, const Shape& shape);
// Returns a NumPy array over memory that `owner` keeps alive.
nb::object numpy_view(void* data, DType dtype, const Shape& shape, nb::handle owner);

// Returns true if the object's type is of the package, such as "cupy".
bool is_of_package(nb::handle object, std::string_view package);
// Returns true if the object is a NumPy array, and not of a subclass.
bool is_plain_numpy(nb::handle object) noexcept;
bool is_numpy_subclass(nb::handle object) noexcept;
bool is_numpy_scalar(nb::handle object) noexcept;
// Returns true for NumPy's scalars and Python's numbers, which are immutable.
bool is_number(nb::handle object) noexcept;
// Reads a number as a read-only array without dimensions.
Array read_number(nb::handle number, const char* name);
// Returns true for a NumPy array that is not contiguous. Throws InvalidArgument if it has a mask.
bool is_strided_numpy(nb::handle object, const char* name);
// Returns a new array without dimensions that holds the scalar.
nb::object array_of_numpy_scalar(nb::handle scalar);

// Returns the DType of a numpy.dtype. Throws InvalidArgument if hocket does not support it. The
// error says that the argument `name` has this dtype.
DType dtype_of_numpy(nb::handle dtype, const char* name);
// Reads a dtype argument: "float32", numpy.float32, numpy.dtype("f4"), torch.float32, ...
DType dtype_argument(nb::handle dtype);

// Imports NumPy. Call it once, when the module is created. Throws if NumPy cannot be imported.
void import_numpy();

}  // namespace hocket::python
