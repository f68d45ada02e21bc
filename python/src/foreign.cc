#include "foreign.h"

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

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

// Takes what a capsule holds out of it, as its consumer must.
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

// The stream that is current in the framework, by its name; the legacy default stream where it has
// none to be asked for.
StreamRef current_stream(nb::handle object, int device) {
  const std::string_view type = Py_TYPE(object.ptr())->tp_name;
  const nb::object module = object.type().attr("__module__");
  const std::string_view home =
      nb::isinstance<nb::str>(module) ? nb::cast<nb::str>(module).c_str() : "";
  std::uintptr_t handle = 0;
  if (home.starts_with("torch") || type == "Tensor") {
    const nb::object cuda = nb::module_::import_("torch").attr("cuda");
    handle = nb::cast<std::uintptr_t>(cuda.attr("current_stream")(device).attr("cuda_stream"));
  } else if (home.starts_with("cupy")) {
    const nb::object cuda = nb::module_::import_("cupy").attr("cuda");
    handle = nb::cast<std::uintptr_t>(cuda.attr("get_current_stream")().attr("ptr"));
  }
  return StreamRef::from_handle(handle);
}

bool is_of_cupy(nb::handle object) {
  const nb::object module = object.type().attr("__module__");
  return nb::isinstance<nb::str>(module) &&
         std::string_view(nb::cast<nb::str>(module).c_str()).starts_with("cupy");
}

// What DLPack calls a stream: 1 is the legacy default one.
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
      from_tensor({.device = {type, id}}, object, name);  // refuses it
    }
    return from_capsule(dlpack_capsule(object, nb::none()), object, name);
  }
  // Told the stream that the array is used on, its owner orders that behind its own.
  const StreamRef stream = current_stream(object, id);
  Array array = from_capsule(dlpack_capsule(object, dlpack_stream(stream)), object, name);
  array.stream = stream;
  return array;
}

// --- CUDA's array interface
// -----------------------------------------------------------------------

std::optional<DType> dtype_of_typestr(std::string_view text) {
  if (text.size() < 3 || text[0] == '>') return std::nullopt;
  const auto bytes = static_cast<unsigned>(std::stoul(std::string(text.substr(2))));
  switch (text[1]) {
    case 'b':
      return bytes == 1 ? std::optional(DType::kBool) : std::nullopt;
    case 'i':
      return integer(8 * bytes, true);
    case 'u':
      return integer(8 * bytes, false);
    case 'f':
      return real(8 * bytes);
    case 'c':
      if (bytes == 8) return DType::kComplex64;
      return bytes == 16 ? std::optional(DType::kComplex128) : std::nullopt;
    default:
      return std::nullopt;
  }
}

std::vector<std::ptrdiff_t> extents(nb::handle tuple) {
  std::vector<std::ptrdiff_t> result;
  for (nb::handle extent : tuple) result.push_back(nb::cast<std::ptrdiff_t>(extent));
  return result;
}

// An entry of the interface, or none.
nb::handle entry(nb::handle interface, const char* key) {
  PyObject* value = PyDict_GetItemString(interface.ptr(), key);
  return value == nullptr ? nb::handle(Py_None) : nb::handle(value);
}

// Version 3 says on which stream the array is being worked on; earlier ones say nothing, and their
// arrays are ready.
StreamRef interface_stream(nb::handle interface) {
  const nb::handle stream = entry(interface, "stream");
  return stream.is_none() ? StreamRef() : StreamRef::from_handle(nb::cast<std::uintptr_t>(stream));
}

Array from_interface(nb::handle object, const char* name) {
  const nb::object interface = object.attr("__cuda_array_interface__");
  if (!PyDict_Check(interface.ptr())) refuse(name, "gave no CUDA array interface");
  const std::string text = nb::cast<nb::str>(entry(interface, "typestr")).c_str();
  const std::optional<DType> dtype = dtype_of_typestr(text);
  if (!dtype) {
    refuse(name, "holds elements of type \"" + text + "\", which hocket does not take");
  }
  if (!entry(interface, "mask").is_none()) refuse(name, "has a mask, which hocket cannot carry");
  const auto shape = extents(entry(interface, "shape"));
  const nb::handle strides = entry(interface, "strides");
  const auto steps = strides.is_none() ? std::vector<std::ptrdiff_t>() : extents(strides);
  const nb::object data = nb::borrow(entry(interface, "data"));
  std::size_t count = 1;
  for (const std::ptrdiff_t extent : shape) count *= static_cast<std::size_t>(extent);
  return {.data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(data[0])),
          .count = count,
          .dtype = *dtype,
          .order = order_of<std::ptrdiff_t>(shape.data(),
                                            strides.is_none() ? nullptr : steps.data(),
                                            static_cast<int>(shape.size()),
                                            static_cast<std::ptrdiff_t>(size_of(*dtype)),
                                            name),
          .writable = !nb::cast<bool>(data[1]) && !is_immutable(object),
          .object = object,
          .memory = MemoryKind::kCuda,
          .stream = interface_stream(interface)};
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

// --- Which way --------------------------------------------------------------------------------

enum class Way : std::uint8_t { kExchange, kInterface, kMethod, kBuffer, kNone };

// How arrays of a type are read, found once: asking costs as much as reading.
struct Known {
  nb::object type;  // held, so that no other type gets its address
  Way way = Way::kNone;
  const dlpack::ExchangeApi* api = nullptr;
};

Known find_way(nb::handle object) {
  Known known{.type = nb::borrow(object.type())};
  known.api = exchange_api(object);
  if (known.api != nullptr) {
    known.way = Way::kExchange;
  } else if (is_of_cupy(object)) {
    known.way = Way::kInterface;  // always in a GPU's memory, and cheaper so
  } else if (nb::hasattr(object, "__dlpack__")) {
    // A type with more: DLPack knows more dtypes, and which memory; its NumPy scalars are no arrays
    // to be written to.
    known.way = Way::kMethod;
  } else if (nb::hasattr(object, "__cuda_array_interface__")) {
    known.way = Way::kInterface;
  } else if (PyObject_CheckBuffer(object.ptr())) {
    known.way = Way::kBuffer;
  }
  return known;
}

// The last few types. Guarded by the GIL, as everything of Python's.
const Known& way_of(nb::handle object) {
  constexpr std::size_t kKept = 16;
  static auto* const kept = new std::vector<Known>;  // outlives the interpreter's end
  const PyObject* type = object.type().ptr();
  for (const Known& known : *kept) {
    if (known.type.ptr() == type) return known;
  }
  if (kept->size() == kKept) kept->erase(kept->begin());
  kept->push_back(find_way(object));
  return kept->back();
}

}  // namespace

Array read_foreign(nb::handle object, const char* name) {
  const Known& known = way_of(object);
  switch (known.way) {
    case Way::kExchange:
      return from_exchange(*known.api, object, name);
    case Way::kMethod:
      return from_method(object, name);
    case Way::kInterface:
      return from_interface(object, name);
    case Way::kBuffer:
      return from_buffer(object, name);
    case Way::kNone:
      break;
  }
  refuse(name,
         std::string("is a ") + Py_TYPE(object.ptr())->tp_name +
             ", not an array; hocket writes into arrays, so wrap values in one: numpy.array(" +
             name + ")");
}

}  // namespace hocket::python
