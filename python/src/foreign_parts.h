// Helpers shared by the readers of arrays that are not NumPy's.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "array.h"
#include "dlpack_abi.h"
#include "hocket/error.h"
#include "immutable.h"

namespace hocket::python {

// Throws InvalidArgument: "NAME WHAT".
[[noreturn]] inline void refuse(const char* name, const std::string& what) {
  throw InvalidArgument(std::string(name) + " " + what);
}

// The text names no function that copies, because PyTorch's and CuPy's functions differ.
inline constexpr const char* kNotContiguous =
    "is not contiguous; call with a contiguous copy, and copy that back if the call writes to it";

// Returns the integer or floating-point type of `bits` bits. Returns nothing if hocket has no such
// type.
std::optional<DType> integer(unsigned bits, bool is_signed);
std::optional<DType> real(unsigned bits);

// Returns true if the elements are adjacent in memory, with the last axis fastest (C order) or the
// first (Fortran order). The stride of an axis with one element does not matter.
template <typename Extent>
bool is_dense(const Extent* shape, const Extent* strides, int ndim, Extent unit, bool c_order) {
  Extent expected = unit;
  for (int i = 0; i < ndim; ++i) {
    const int axis = c_order ? ndim - 1 - i : i;
    if (shape[axis] != 1 && strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

template <typename Extent>
MemoryOrder order_of(
    const Extent* shape, const Extent* strides, int ndim, Extent unit, const char* name) {
  for (int axis = 0; axis < ndim; ++axis) {
    if (shape[axis] == 0) return MemoryOrder::kAny;
  }
  const bool c = strides == nullptr || is_dense(shape, strides, ndim, unit, true);
  const bool fortran = strides == nullptr ? ndim < 2 : is_dense(shape, strides, ndim, unit, false);
  if (c && fortran) return MemoryOrder::kAny;
  if (c) return MemoryOrder::kC;
  if (fortran) return MemoryOrder::kFortran;
  refuse(name, kNotContiguous);
}

// --- Ways to read a foreign array -----------------------------------------------------------

// Returns the table of functions that the object's type offers, or null.
const dlpack::ExchangeApi* exchange_api(nb::handle object);
Array from_exchange(const dlpack::ExchangeApi& api, nb::handle object, const char* name);
// Reads an array by its method `__dlpack__`.
Array from_method(nb::handle object, const char* name);
// Returns whether an array can be read by CuPy's attributes; see foreign_cupy.cc.
bool is_cupy_array(nb::handle object);
Array from_cupy(nb::handle object, const char* name);
// Reads an array by its `__cuda_array_interface__`.
Array from_interface(nb::handle object, const char* name);
Array from_buffer(nb::handle object, const char* name);

}  // namespace hocket::python
