// Arrays as Python hands them over: where the elements are, how many, of which type.
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

// What keeps foreign memory exported (a DLPack tensor, a buffer), or is memory in an array's place;
// released under the GIL.
class Lease {
 public:
  Lease() noexcept = default;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  virtual ~Lease() = default;
  // See strided.h.
  virtual void land() {}
};

// A resource: an argument seen as contiguous memory. Borrows the Python object: whoever keeps an
// Array beyond the call keeps the object too. Made and destroyed under the GIL.
struct Array {
  void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::kUInt8;
  MemoryOrder order = MemoryOrder::kAny;
  bool writable = false;
  nb::handle object = {};
  std::unique_ptr<Lease> lease = {};
  // In a GPU's memory: which one's (kAnyDevice: the driver knows), and the stream that is current
  // in the framework the array belongs to.
  MemoryKind memory = MemoryKind::kHost;
  int device = kAnyDevice;
  std::optional<StreamRef> stream = {};
  // Work on it may be under way on `stream`: who uses it on another one waits for that.
  bool is_at_work = false;

  bool is_on_gpu() const noexcept { return memory == MemoryKind::kCuda; }
  ConstArrayView input() const noexcept { return output(); }
  ArrayView output() const noexcept {
    return ArrayView(data, count, dtype, memory, device).in_order(order);
  }
};

// The array of an argument. `name` is the argument's, for messages. Throws InvalidArgument where
// the object is no array, not contiguous, or of a type that hocket does not take.
Array read_array(nb::handle object, const char* name);
// The same of an argument that is written to.
Array writable_array(nb::handle object, const char* name);

// A mend for messages: the call is made with a copy, `made` of the array, which is brought back by
// the statement `brought_back`; empty: by assignment.
std::string by_way_of_copy(const std::string& made,
                           const char* name,
                           std::string brought_back = {});

// Throws InvalidArgument where the elements lie in Fortran order, for calls that cut the array.
void require_c_order(const Array& array, const char* name);
// Throws InvalidArgument where one is in C and the other in Fortran order.
void require_same_order(const Array& a, const char* a_name, const Array& b, const char* b_name);

using Shape = std::vector<std::ptrdiff_t>;
Shape shape_of(const Array& array);
std::string to_string(const Shape& shape);

// A new array of the kind, dtype and order of `like`: PyTorch gives PyTorch, CuPy gives CuPy, Numba
// Numba, JAX what is `finished` (immutable.h) once it is written; everything else in host memory
// gives NumPy.
nb::object new_array_like(const Array& like, const Shape& shape);
// One of int32 where `like` is, of its shape and order: NumPy's on the host.
nb::object new_int32_beside(const Array& like);
// A new NumPy array in C order.
nb::object new_numpy_array(DType dtype, const Shape& shape);
// A NumPy array over memory that `owner` keeps alive.
nb::object numpy_view(void* data, DType dtype, const Shape& shape, nb::handle owner);

// Whether it is a NumPy array and of no class derived from that; whether it is of such a class;
// whether it is one of NumPy's scalars.
bool is_plain_numpy(nb::handle object) noexcept;
bool is_numpy_subclass(nb::handle object) noexcept;
bool is_numpy_scalar(nb::handle object) noexcept;
// Whether it is one of NumPy's scalars or a number of Python's, which never change.
bool is_number(nb::handle object) noexcept;
// Such a number as an array without dimensions, which can only be read.
Array read_number(nb::handle number, const char* name);
// Whether it is a NumPy array that is not contiguous. Throws InvalidArgument for one with a mask.
bool is_strided_numpy(nb::handle object, const char* name);
// A new array without dimensions that holds the scalar.
nb::object array_of_numpy_scalar(nb::handle scalar);

// That of a numpy.dtype. Throws InvalidArgument, which says that `name` has it, for what hocket
// does not take.
DType dtype_of_numpy(nb::handle dtype, const char* name);
// "float32", numpy.float32, numpy.dtype("f4"), torch.float32, ml_dtypes.bfloat16, ...
DType dtype_argument(nb::handle dtype);

// Call once, when the module is made; throws where NumPy cannot be imported.
void import_numpy();

}  // namespace hocket::python
