#include "foreign.h"

#include <cstring>
#include <string>
#include <string_view>

#include "dlpack_abi.h"
#include "hocket/error.h"

namespace hocket::python {
namespace {

[[noreturn]] void refuse(const char* name, const std::string& what) {
  throw InvalidArgument(std::string(name) + " " + what);
}

std::optional<DType> integer(unsigned bits, bool is_signed) {
  switch (bits) {
    case 8:
      return is_signed ? DType::kInt8 : DType::kUInt8;
    case 16:
      return is_signed ? DType::kInt16 : DType::kUInt16;
    case 32:
      return is_signed ? DType::kInt32 : DType::kUInt32;
    case 64:
      return is_signed ? DType::kInt64 : DType::kUInt64;
    default:
      return std::nullopt;
  }
}

std::optional<DType> real(unsigned bits) {
  switch (bits) {
    case 16:
      return DType::kFloat16;
    case 32:
      return DType::kFloat32;
    case 64:
      return DType::kFloat64;
    default:
      return std::nullopt;
  }
}

std::optional<DType> dtype_of(dlpack::DataType type) {
  if (type.lanes != 1) return std::nullopt;
  switch (type.code) {
    case dlpack::kInt:
      return integer(type.bits, true);
    case dlpack::kUInt:
      return integer(type.bits, false);
    case dlpack::kFloat:
      return real(type.bits);
    case dlpack::kBFloat:
      return type.bits == 16 ? std::optional(DType::kBFloat16) : std::nullopt;
    case dlpack::kComplex:
      if (type.bits == 64) return DType::kComplex64;
      return type.bits == 128 ? std::optional(DType::kComplex128) : std::nullopt;
    case dlpack::kBool:
      return type.bits == 8 ? std::optional(DType::kBool) : std::nullopt;
    case dlpack::kFloat8E4M3FN:
      return DType::kFloat8E4M3;
    case dlpack::kFloat8E5M2:
      return DType::kFloat8E5M2;
    default:
      return std::nullopt;
  }
}

// Whether elements lie one after the other, the last axis fastest (C) or the first (Fortran).
// Axes of one element may have any stride.
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
Order order_of(
    const Extent* shape, const Extent* strides, int ndim, Extent unit, const char* name) {
  for (int axis = 0; axis < ndim; ++axis) {
    if (shape[axis] == 0) return Order::kBoth;
  }
  const bool c = strides == nullptr || is_dense(shape, strides, ndim, unit, true);
  const bool fortran = strides == nullptr ? ndim < 2 : is_dense(shape, strides, ndim, unit, false);
  if (c && fortran) return Order::kBoth;
  if (c) return Order::kC;
  if (fortran) return Order::kFortran;
  refuse(name, "is not contiguous; pass a contiguous copy");
}

Array from_tensor(const dlpack::Tensor& tensor, nb::handle object, const char* name) {
  if (tensor.device.type != dlpack::kCpu && tensor.device.type != dlpack::kCudaHost) {
    refuse(name,
           "is in a GPU's memory (DLPack device " + std::to_string(tensor.device.type) +
               "), and this hocket carries host memory only; copy it to the host first");
  }
  const std::optional<DType> dtype = dtype_of(tensor.dtype);
  if (!dtype) {
    refuse(name,
           "has a dtype that hocket does not take (DLPack code " +
               std::to_string(tensor.dtype.code) + " of " + std::to_string(tensor.dtype.bits) +
               " bits)");
  }
  std::size_t count = 1;
  for (int axis = 0; axis < tensor.ndim; ++axis) {
    count *= static_cast<std::size_t>(tensor.shape[axis]);
  }
  return {.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset,
          .count = count,
          .dtype = *dtype,
          .order = order_of<std::int64_t>(tensor.shape, tensor.strides, tensor.ndim, 1, name),
          .writable = true,
          .object = object};
}

// --- DLPack ---------------------------------------------------------------------------------

template <typename Managed>
class TensorLease final : public Lease {
 public:
  explicit TensorLease(Managed* tensor) : tensor_(tensor) {}
  ~TensorLease() override {
    if (tensor_->deleter != nullptr) tensor_->deleter(tensor_);
  }

 private:
  Managed* tensor_;
};

// JAX's arrays never change, which DLPack before 1.0 cannot say.
bool is_immutable(nb::handle object) {
  const std::string_view type = Py_TYPE(object.ptr())->tp_name;
  return type.starts_with("jax");
}

template <typename Managed>
Array from_managed(Managed* tensor, std::uint64_t flags, nb::handle object, const char* name) {
  auto lease = std::make_unique<TensorLease<Managed>>(tensor);
  Array array = from_tensor(tensor->tensor, object, name);
  array.writable = (flags & dlpack::kReadOnly) == 0 && !is_immutable(object);
  array.lease = std::move(lease);
  return array;
}

const dlpack::ExchangeApi* exchange_api(nb::handle object) {
  constexpr const char* kCapsule = "dlpack_exchange_api";
  // The type's own attribute: the interface belongs to the type, not to an instance.
  PyObject* capsule = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())),
                                             "__dlpack_c_exchange_api__");
  if (capsule == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  const nb::object owner = nb::steal(capsule);
  if (!PyCapsule_IsValid(capsule, kCapsule)) return nullptr;
  auto* header = static_cast<dlpack::ExchangeHeader*>(PyCapsule_GetPointer(capsule, kCapsule));
  while (header != nullptr && header->version.major != 1) header = header->previous;
  return reinterpret_cast<dlpack::ExchangeApi*>(header);
}

Array from_exchange(const dlpack::ExchangeApi& api, nb::handle object, const char* name) {
  if (api.view_tensor != nullptr) {
    dlpack::Tensor tensor{};
    if (api.view_tensor(object.ptr(), &tensor) != 0) throw nb::python_error();
    Array array = from_tensor(tensor, object, name);
    array.writable = !is_immutable(object);
    return array;
  }
  dlpack::VersionedTensor* tensor = nullptr;
  if (api.export_tensor(object.ptr(), &tensor) != 0) throw nb::python_error();
  return from_managed(tensor, tensor->flags, object, name);
}

// Takes what a capsule holds out of it, as its consumer must.
template <typename Managed>
Managed* take(nb::handle capsule, const char* fresh, const char* used) {
  if (!PyCapsule_IsValid(capsule.ptr(), fresh)) return nullptr;
  auto* tensor = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), fresh));
  PyCapsule_SetName(capsule.ptr(), used);
  return tensor;
}

nb::object dlpack_capsule(nb::handle object) {
  const nb::object method = object.attr("__dlpack__");
  try {
    return method(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;  // a library from before DLPack 1.0
  }
  return method();
}

Array from_method(nb::handle object, const char* name) {
  if (nb::hasattr(object, "__dlpack_device__")) {  // asked first: exporting may cost a GPU's time
    const nb::object device = object.attr("__dlpack_device__")();
    const int type = nb::cast<int>(nb::int_(device[0]));
    if (type != dlpack::kCpu && type != dlpack::kCudaHost) {
      from_tensor({.device = {type, 0}}, object, name);
    }
  }
  const nb::object capsule = dlpack_capsule(object);
  if (auto* tensor =
          take<dlpack::VersionedTensor>(capsule, "dltensor_versioned", "used_dltensor_versioned")) {
    return from_managed(tensor, tensor->flags, object, name);
  }
  if (auto* tensor = take<dlpack::ManagedTensor>(capsule, "dltensor", "used_dltensor")) {
    return from_managed(tensor, 0, object, name);
  }
  refuse(name, "gave no DLPack tensor");
}

// --- The buffer protocol ----------------------------------------------------------------------

class BufferLease final : public Lease {
 public:
  BufferLease() = default;
  ~BufferLease() override { PyBuffer_Release(&buffer); }
  Py_buffer buffer{};
};

std::optional<DType> dtype_of_format(std::string_view format, unsigned bytes) {
  if (!format.empty() && (format[0] == '@' || format[0] == '=')) format.remove_prefix(1);
  if (format == "Zf") return DType::kComplex64;
  if (format == "Zd") return DType::kComplex128;
  if (format.size() != 1) return std::nullopt;
  switch (format[0]) {
    case '?':
      return DType::kBool;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return integer(8 * bytes, true);
    case 'c':
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return integer(8 * bytes, false);
    case 'e':
    case 'f':
    case 'd':
      return real(8 * bytes);
    default:
      return std::nullopt;
  }
}

Array from_buffer(nb::handle object, const char* name) {
  auto lease = std::make_unique<BufferLease>();
  Py_buffer& buffer = lease->buffer;
  bool writable = true;
  if (PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_RECORDS) != 0) {
    PyErr_Clear();
    writable = false;
    if (PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_RECORDS_RO) != 0) {
      buffer.obj = nullptr;
      throw nb::python_error();
    }
  }
  const char* format = buffer.format == nullptr ? "B" : buffer.format;
  std::string_view native = format;
  if (!native.empty() && native[0] == '<')
    native.remove_prefix(1);  // x86 and ARM are little-endian
  const std::optional<DType> dtype =
      dtype_of_format(native, static_cast<unsigned>(buffer.itemsize));
  if (!dtype) {
    refuse(name,
           "holds elements of format \"" + std::string(format) + "\", which hocket does not take");
  }
  return {.data = buffer.buf,
          .count = static_cast<std::size_t>(buffer.len / buffer.itemsize),
          .dtype = *dtype,
          .order = order_of<Py_ssize_t>(
              buffer.shape, buffer.strides, buffer.ndim, buffer.itemsize, name),
          .writable = writable,
          .object = object,
          .lease = std::move(lease)};
}

}  // namespace

Array read_foreign(nb::handle object, const char* name) {
  if (const auto* api = exchange_api(object)) return from_exchange(*api, object, name);
  const bool has_dlpack = nb::hasattr(object, "__dlpack__");
  // A type with both: DLPack knows more dtypes; its NumPy scalars are no arrays to be written to.
  if (has_dlpack) return from_method(object, name);
  if (PyObject_CheckBuffer(object.ptr())) return from_buffer(object, name);
  if (nb::hasattr(object, "__cuda_array_interface__")) {
    refuse(name, "is in a GPU's memory, and this hocket carries host memory only; copy it first");
  }
  refuse(name,
         std::string("is a ") + Py_TYPE(object.ptr())->tp_name +
             ", not an array; hocket writes into arrays, so wrap values in one: numpy.array(" +
             name + ")");
}

}  // namespace hocket::python
