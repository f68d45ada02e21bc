// Reads arrays that offer CUDA's array interface or Python's buffer protocol.
#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "foreign_parts.h"

namespace hocket::python {

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

// --- CUDA's array interface ---------------------------------------------------------------------

namespace {

std::optional<DType> dtype_of_typestr(std::string_view text) {
  if (text.size() < 3 || text[0] == '>') return std::nullopt;
  unsigned bytes = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + 2, end, bytes);
  if (error != std::errc() || last != end || bytes > 16) return std::nullopt;
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

// Returns an entry of the interface's dictionary, or None if it is missing.
nb::handle entry(nb::handle interface, const char* key) {
  PyObject* value = PyDict_GetItemString(interface.ptr(), key);
  return value == nullptr ? nb::handle(Py_None) : nb::handle(value);
}

// Returns the stream that works on the array. Version 3 of the interface tells it. Arrays of
// earlier versions are ready for use.
StreamRef interface_stream(nb::handle interface) {
  const nb::handle stream = entry(interface, "stream");
  return stream.is_none() ? StreamRef() : StreamRef::from_handle(nb::cast<std::uintptr_t>(stream));
}

}  // namespace

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
  const bool has_steps = strides.is_none() || steps.size() == shape.size();
  if (!has_steps || std::any_of(shape.begin(), shape.end(), [](auto n) { return n < 0; })) {
    refuse(name, "gave a CUDA array interface whose shape and strides are not those of an array");
  }
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
          .stream = interface_stream(interface),
          .is_at_work = !entry(interface, "stream").is_none()};
}

// --- The buffer protocol ----------------------------------------------------------------------

namespace {

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

}  // namespace

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

}  // namespace hocket::python
