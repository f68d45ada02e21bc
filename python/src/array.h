// Arrays as Python passes them: address, number and type of the elements.
//
// NumPy arrays are read through NumPy's own structs, a few loads; everything else (PyTorch, JAX,
// anything with DLPack or the buffer protocol) goes through `foreign.h`.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hocket/array_view.h"
#include "hocket/stream.h"

namespace hocket::python {

namespace nb = nanobind;

// Keeps foreign memory exported (a DLPack tensor, a buffer), or owns memory that stands in for the
// array. Released under the GIL.
class Lease {
 public:
  Lease() noexcept = default;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  virtual ~Lease() = default;
  // See strided.h.
  virtual void land() {}
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
  // Set for memory of a GPU: its number (kAnyDevice: the driver knows), and the current stream of
  // the array's framework.
  MemoryKind memory = MemoryKind::kHost;
  int device = kAnyDevice;
  std::optional<StreamRef> stream = {};
  // Work on the array may be under way on `stream`. A call on another stream waits for it.
  bool is_at_work = false;

  bool is_on_gpu() const noexcept { return memory == MemoryKind::kCuda; }
  ConstArrayView input() const noexcept { return output(); }
  ArrayView output() const noexcept {
    return ArrayView(data, count, dtype, memory, device).in_order(order);
  }
};

// Reads the array of an argument. `name` is the argument's, for messages. Throws InvalidArgument if
// the object is no array, not contiguous, or of a type that hocket does not take.
Array read_array(nb::handle object, const char* name);
// The same for an argument that is written to.
Array writable_array(nb::handle object, const char* name);

// Advice for messages: to make the call with `made`, a copy of the array. The statement
// `brought_back` copies the result back; if it is empty, an assignment does.
std::string by_way_of_copy(const std::string& made,
                           const char* name,
                           std::string brought_back = {});

// Throws InvalidArgument if the elements lie in Fortran order. For calls that cut the array.
void require_c_order(const Array& array, const char* name);
// Throws InvalidArgument if one array is in C order and the other in Fortran order.
void require_same_order(const Array& a, const char* a_name, const Array& b, const char* b_name);

using Shape = std::vector<std::ptrdiff_t>;
Shape shape_of(const Array& array);
std::string to_string(const Shape& shape);

// A new array of the framework, dtype and order of `like`. PyTorch, CuPy and Numba get their own
// arrays. JAX gets memory to be `finished` (immutable.h) once it is written. Other arrays in host
// memory get NumPy's.
nb::object new_array_like(const Array& like, const Shape& shape);
// A new int32 array in the memory of `like`, of its shape and order; NumPy's on the host.
nb::object new_int32_beside(const Array& like);
// A new NumPy array in C order.
nb::object new_numpy_array(DType dtype, const Shape& shape);
// A NumPy array over memory that `owner` keeps alive.
nb::object numpy_view(void* data, DType dtype, const Shape& shape, nb::handle owner);

// A NumPy array, but no subclass; a subclass; a NumPy scalar.
bool is_plain_numpy(nb::handle object) noexcept;
bool is_numpy_subclass(nb::handle object) noexcept;
bool is_numpy_scalar(nb::handle object) noexcept;
// True for NumPy's scalars and Python's numbers, which never change.
bool is_number(nb::handle object) noexcept;
// Reads such a number as a read-only array without dimensions.
Array read_number(nb::handle number, const char* name);
// True for a NumPy array that is not contiguous. Throws InvalidArgument if it has a mask.
bool is_strided_numpy(nb::handle object, const char* name);
// A new array without dimensions that holds the scalar.
nb::object array_of_numpy_scalar(nb::handle scalar);

// The DType of a numpy.dtype. Throws InvalidArgument if hocket does not take it; the message says
// that `name` has it.
DType dtype_of_numpy(nb::handle dtype, const char* name);
// "float32", numpy.float32, numpy.dtype("f4"), torch.float32, ml_dtypes.bfloat16, ...
DType dtype_argument(nb::handle dtype);

// Call once, when the module is made. Throws if NumPy cannot be imported.
void import_numpy();

}  // namespace hocket::python
