// Reads arrays that offer DLPack.
#include <string>
#include <string_view>

#include "arguments.h"
#include "foreign_parts.h"

namespace hocket::python {
namespace {

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

bool is_on_gpu(std::int32_t device_type) {
  switch (device_type) {
    case dlpack::kCuda:
    case dlpack::kCudaManaged:
      return true;
    default:
      return false;
  }
}

Array from_tensor(const dlpack::Tensor& tensor, nb::handle object, const char* name) {
  const bool on_gpu = is_on_gpu(tensor.device.type);
  if (!on_gpu && tensor.device.type != dlpack::kCpu && tensor.device.type != dlpack::kCudaHost) {
    refuse(name,
           "is in memory of a kind that hocket does not carry (DLPack device " +
               std::to_string(tensor.device.type) + "); copy it to the host first");
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
          .object = object,
          .memory = on_gpu ? MemoryKind::kCuda : MemoryKind::kHost,
          .device = on_gpu ? tensor.device.id : kAnyDevice};
}

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

template <typename Managed>
Array from_managed(Managed* tensor, std::uint64_t flags, nb::handle object, const char* name) {
  auto lease = std::make_unique<TensorLease<Managed>>(tensor);
  Array array = from_tensor(tensor->tensor, object, name);
  // JAX's arrays are immutable. DLPack before version 1.0 cannot say so.
  array.writable = (flags & dlpack::kReadOnly) == 0 && !is_immutable(object);
  array.lease = std::move(lease);
  return array;
}

}  // namespace

const dlpack::ExchangeApi* exchange_api(nb::handle object) {
  constexpr const char* kCapsule = "dlpack_exchange_api";
  // Looks at the type, not at the object, because DLPack defines this attribute for types.
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

namespace {

Array exported(const dlpack::ExchangeApi& api, nb::handle object, const char* name) {
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

}  // namespace

Array from_exchange(const dlpack::ExchangeApi& api, nb::handle object, const char* name) {
  Array array = exported(api, object, name);
  if (!array.is_on_gpu()) return array;
  void* stream = nullptr;
  if (api.current_stream != nullptr &&
      api.current_stream(dlpack::kCuda, array.device, &stream) != 0) {
    throw nb::python_error();
  }
  array.stream = StreamRef::from_handle(reinterpret_cast<std::uintptr_t>(stream));
  return array;
}

namespace {

// Takes the tensor out of a capsule named `fresh`, and renames the capsule to `used`, as DLPack
// requires of a consumer. Returns null if the capsule has another name.
template <typename Managed>
Managed* take(nb::handle capsule, const char* fresh, const char* used) {
  if (!PyCapsule_IsValid(capsule.ptr(), fresh)) return nullptr;
  auto* tensor = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), fresh));
  PyCapsule_SetName(capsule.ptr(), used);
  return tensor;
}

nb::object dlpack_capsule(nb::handle object, nb::handle stream) {
  const nb::object method = object.attr("__dlpack__");
  try {
    if (!stream.is_none()) {
      return method(nb::arg("stream") = stream, nb::arg("max_version") = nb::make_tuple(1, 0));
    }
    return method(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;  // a library from before DLPack 1.0
  }
  return stream.is_none() ? method() : method(nb::arg("stream") = stream);
}

// Returns the current stream of the object's framework. Returns the legacy default stream if the
// framework is not known here.
StreamRef current_stream(nb::handle object, int device) {
  if (!is_of_package(object, "torch") && name_of_type(object) != "Tensor") return StreamRef();
  const nb::object cuda = nb::module_::import_("torch").attr("cuda");
  return StreamRef::from_handle(
      nb::cast<std::uintptr_t>(cuda.attr("current_stream")(device).attr("cuda_stream")));
}

// Returns the stream's number in DLPack, where 1 is the legacy default stream.
nb::object dlpack_stream(StreamRef stream) {
  const auto handle = reinterpret_cast<std::uintptr_t>(stream.handle());
  return nb::int_(handle == 0 ? 1 : handle);
}

Array from_capsule(nb::handle capsule, nb::handle object, const char* name) {
  if (auto* tensor =
          take<dlpack::VersionedTensor>(capsule, "dltensor_versioned", "used_dltensor_versioned")) {
    return from_managed(tensor, tensor->flags, object, name);
  }
  if (auto* tensor = take<dlpack::ManagedTensor>(capsule, "dltensor", "used_dltensor")) {
    return from_managed(tensor, 0, object, name);
  }
  refuse(name, "gave no DLPack tensor");
}

}  // namespace

Array from_method(nb::handle object, const char* name) {
  int type = dlpack::kCpu;
  int id = 0;
  if (nb::hasattr(object, "__dlpack_device__")) {
    const nb::object device = object.attr("__dlpack_device__")();
    type = nb::cast<int>(nb::int_(device[0]));
    id = nb::cast<int>(nb::int_(device[1]));
  }
  if (!is_on_gpu(type)) {
    if (type != dlpack::kCpu && type != dlpack::kCudaHost) {
      from_tensor({.device = {type, id}}, object, name);  // throws the error for this device
    }
    return from_capsule(dlpack_capsule(object, nb::none()), object, name);
  }
  // DLPack's `stream` argument names the stream on which the consumer will use the array. The
  // framework makes that stream wait for its own work on the array.
  const StreamRef stream = current_stream(object, id);
  Array array = from_capsule(dlpack_capsule(object, dlpack_stream(stream)), object, name);
  array.stream = stream;
  array.is_at_work = true;
  return array;
}

}  // namespace hocket::python
