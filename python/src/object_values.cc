// Converts Python objects to hocket's and back. Plain data is encoded; other objects are pickled if
// the caller allows it.
#include "object_values.h"

#include <complex>
#include <cstring>
#include <string>

#include "arguments.h"
#include "hocket/error.h"
#include "verbs.h"

namespace hocket::python {
namespace {

nb::module_ pickle_module() { return nb::module_::import_("pickle"); }

// --- Python to hocket -------------------------------------------------------------------------

Object to_object(nb::handle value, Reading& reading, int depth);

[[noreturn]] void refuse_part(const std::string& what) {
  throw InvalidArgument("object holds " + what +
                        "; without allow_pickle=True it may hold None, bool, int, float, complex, "
                        "str, bytes, bytearray, list, tuple, dict, NumPy's scalars and arrays");
}

// Refuses a mutable part that occurs twice, because the receiver would get two separate parts.
void require_new(nb::handle value, Reading& reading) {
  if (reading.changeable.insert(value.ptr()).second) return;
  throw InvalidArgument("object holds " + type_in_words(value) +
                        " twice, or within itself, which would arrive as two; put copies into it, "
                        "or pass allow_pickle=True on all ranks");
}

Object integer_object(nb::handle value) {
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow == 0) {
    if (small == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return small;
  }
  const nb::object magnitude = nb::steal(PyNumber_Absolute(value.ptr()));
  const auto bits = nb::cast<std::size_t>(magnitude.attr("bit_length")());
  const nb::object bytes = magnitude.attr("to_bytes")((bits + 7) / 8, "little");
  return Object::integer(overflow < 0, bytes_of(nb::borrow<nb::bytes>(bytes)));
}

std::vector<Object> items_of(nb::handle sequence, Reading& reading, int depth) {
  std::vector<Object> items;
  for (nb::handle item : sequence) items.push_back(to_object(item, reading, depth + 1));
  return items;
}

Object dict_object(nb::handle value, Reading& reading, int depth) {
  std::vector<Object::Entry> entries;
  for (auto [key, item] : nb::borrow<nb::dict>(value)) {
    entries.emplace_back(to_object(key, reading, depth + 1), to_object(item, reading, depth + 1));
  }
  return Object::dict(std::move(entries));
}

Object string_object(nb::handle value) {
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &length);
  if (text == nullptr) {
    PyErr_Clear();
    refuse_part("a str with lone surrogates, which UTF-8 cannot say");
  }
  return Object(std::string(text, static_cast<std::size_t>(length)));
}

// Returns true if the value is sent as an array. Without pickle, which keeps types, arrays of other
// packages and `memoryview` arrive as NumPy arrays. Subclasses of NumPy's array are excluded,
// because they would arrive as the base class.
bool is_array(nb::handle value, Pickle pickle) {
  if (is_plain_numpy(value)) return true;
  if (pickle == Pickle::kAllow || is_numpy_subclass(value)) return false;
  if (PyBytes_Check(value.ptr()) || PyByteArray_Check(value.ptr())) return false;
  return nb::hasattr(value, "__dlpack__") || PyObject_CheckBuffer(value.ptr());
}

bool is_fortran(nb::handle value) {
  if (!is_plain_numpy(value)) return false;
  const nb::object flags = value.attr("flags");
  return nb::cast<bool>(flags.attr("f_contiguous")) && !nb::cast<bool>(flags.attr("c_contiguous"));
}

// Reads an array or scalar within the object. `part` is that value, and `array` holds its elements.
Array read_part(nb::handle part, nb::handle array) {
  try {
    return read_array(array, "x");
  } catch (const InvalidArgument& error) {
    if (is_numpy_scalar(part)) refuse_part(type_in_words(part));
    if (!is_plain_numpy(part)) {
      throw InvalidArgument("object holds " + type_in_words(part) + ": " + error.what());
    }
    const nb::object dtype = part.attr("dtype");
    refuse_part(std::string("an array of dtype ") + nb::str(nb::handle(dtype)).c_str());
  }
}

Object array_object(nb::handle value) {
  // Converts to C order. This costs no extra copy: contiguous arrays stay as they are, and the
  // codec copies the elements in any case.
  const nb::object contiguous =
      nb::hasattr(value, "__array_interface__")
          ? nb::module_::import_("numpy").attr("asanyarray")(value, nb::arg("order") = "C")
          : nb::borrow(value);
  const Array array = read_part(value, contiguous);
  require_c_order(array, "an array in object");
  const Shape shape = shape_of(array);
  Object result = Object::array(array.input(), {shape.begin(), shape.end()});
  if (!is_fortran(value)) return result;
  auto fortran = std::make_shared<ObjectArray>(result.as_array());
  fortran->is_fortran = true;
  return Object::array(std::move(fortran));
}

// Returns a NumPy scalar as an object. Some types, such as dates, are refused, and need pickle.
Object scalar_object(nb::handle value) {
  const nb::object array = array_of_numpy_scalar(value);
  return Object::scalar(read_part(value, array).input());
}

Object to_object(nb::handle value, Reading& reading, int depth) {
  PyObject* p = value.ptr();
  if (depth > kMaxObjectDepth) {
    throw InvalidArgument("object nests deeper than " + std::to_string(kMaxObjectDepth) +
                          " levels, or holds itself; flatten it, or pass "
                          "allow_pickle=True on all ranks");
  }
  // Compares exact types. A subclass (an enum, a named tuple) would arrive as its base class.
  if (p == Py_None) return {};
  if (PyBool_Check(p)) return p == Py_True;
  if (PyLong_CheckExact(p)) return integer_object(value);
  if (PyFloat_CheckExact(p)) return PyFloat_AsDouble(p);
  if (PyComplex_CheckExact(p)) {
    return std::complex<double>(PyComplex_RealAsDouble(p), PyComplex_ImagAsDouble(p));
  }
  if (PyUnicode_CheckExact(p)) return string_object(value);
  if (PyBytes_CheckExact(p)) return Object::bytes(bytes_of(nb::borrow<nb::bytes>(value)));
  if (PyTuple_CheckExact(p)) return Object::tuple(items_of(value, reading, depth));
  const bool is_scalar = is_numpy_scalar(value);
  if (!is_scalar) require_new(value, reading);
  if (PyList_CheckExact(p)) return Object::list(items_of(value, reading, depth));
  if (PyDict_CheckExact(p)) return dict_object(value, reading, depth);
  if (PyByteArray_CheckExact(p)) {
    const nb::ft_object_guard unchanged(value);
    return Object::byte_array({reinterpret_cast<const std::byte*>(PyByteArray_AsString(p)),
                               static_cast<std::size_t>(PyByteArray_Size(p))});
  }
  if (is_scalar || is_array(value, reading.pickle)) {
    Object result = is_scalar ? scalar_object(value) : array_object(value);
    reading.changes |= !is_scalar && !is_plain_numpy(value);
    return result;
  }
  refuse_part(type_in_words(value));
}

}  // namespace

Object read_object(nb::handle value, Reading& reading) {
  reading.changeable.clear();
  const bool changed = reading.changes;
  try {
    return to_object(value, reading, 0);
  } catch (const InvalidArgument&) {
    if (reading.pickle == Pickle::kRefuse) throw;
  }
  reading.changes = changed;
  const nb::object bytes = pickle_module().attr("dumps")(value, nb::arg("protocol") = -1);
  return Object::pickle(bytes_of(nb::borrow<nb::bytes>(bytes)));
}

namespace {

// --- hocket to Python -------------------------------------------------------------------------

nb::object to_bytes(std::span<const std::byte> bytes) {
  return nb::bytes(bytes.data(), bytes.size());
}

nb::object from_integer(const Object& object) {
  if (object.fits_int64()) return nb::int_(object.as_integer());
  const nb::object magnitude = nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type))
                                   .attr("from_bytes")(to_bytes(object.magnitude()), "little");
  return object.is_negative() ? steal_or_throw(PyNumber_Negative(magnitude.ptr())) : magnitude;
}

nb::object from_array(const ObjectArray& array) {
  const nb::object result =
      new_numpy_array(array.dtype, Shape(array.shape.begin(), array.shape.end()));
  const Array target = writable_array(result, "array");
  if (!array.data.empty()) std::memcpy(target.data, array.data.data(), array.data.size());
  return array.is_fortran ? nb::module_::import_("numpy").attr("asfortranarray")(result) : result;
}

nb::object from_scalar(const ObjectArray& array) {
  return from_array(array).attr("__getitem__")(nb::make_tuple());
}

nb::object to_byte_array(std::span<const std::byte> bytes) {
  return steal_or_throw(PyByteArray_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                                      static_cast<Py_ssize_t>(bytes.size())));
}

nb::object from_dict(const Object& object, Pickle pickle) {
  nb::dict dict;
  for (const auto& [key, value] : object.entries()) {
    dict[from_object(key, pickle)] = from_object(value, pickle);
  }
  return dict;
}

nb::object from_pickle(const Object& object, Pickle pickle) {
  if (pickle == Pickle::kRefuse) {
    throw InvalidArgument(
        "the object that came is pickled, and unpickling runs whatever code it "
        "asks for; where you trust all ranks, pass allow_pickle=True");
  }
  return pickle_module().attr("loads")(to_bytes(object.as_pickle()));
}

}  // namespace

nb::list from_items(std::span<const Object> items, Pickle pickle) {
  nb::list list;
  for (const Object& item : items) list.append(from_object(item, pickle));
  return list;
}

nb::object from_object(const Object& object, Pickle pickle) {
  switch (object.kind()) {
    case ObjectKind::kNone:
      return nb::none();
    case ObjectKind::kBool:
      return nb::bool_(object.as_bool());
    case ObjectKind::kInteger:
      return from_integer(object);
    case ObjectKind::kDouble:
      return nb::float_(object.as_double());
    case ObjectKind::kComplex:
      return steal_or_throw(
          PyComplex_FromDoubles(object.as_complex().real(), object.as_complex().imag()));
    case ObjectKind::kString:
      return nb::str(object.as_string().data(), object.as_string().size());
    case ObjectKind::kBytes:
      return to_bytes(object.as_bytes());
    case ObjectKind::kList:
      return from_items(object.items(), pickle);
    case ObjectKind::kTuple:
      return nb::tuple(from_items(object.items(), pickle));
    case ObjectKind::kDict:
      return from_dict(object, pickle);
    case ObjectKind::kArray:
      return from_array(object.as_array());
    case ObjectKind::kPickle:
      return from_pickle(object, pickle);
    case ObjectKind::kScalar:
      return from_scalar(object.as_array());
    case ObjectKind::kByteArray:
      return to_byte_array(object.as_bytes());
  }
  return nb::none();
}

}  // namespace hocket::python
