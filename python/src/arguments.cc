#include "arguments.h"

#include <nanobind/stl/string.h>

#include <limits>

#include "hocket/error.h"

namespace hocket::python {
namespace {

[[noreturn]] void refuse_type(nb::handle value, const char* name, const char* wanted) {
  throw InvalidArgument(std::string(name) + " is " + type_in_words(value) + "; give " + wanted);
}

nb::object iterator_of(nb::handle value, const char* name, const char* wanted) {
  nb::object iterator = nb::steal(PyObject_GetIter(value.ptr()));
  if (iterator.is_valid()) return iterator;
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
  PyErr_Clear();
  refuse_type(value, name, wanted);
}

std::int64_t number_between(nb::handle value,
                            const char* name,
                            std::int64_t low,
                            std::int64_t high) {
  if (PyIndex_Check(value.ptr()) == 0) refuse_type(value, name, "a whole number");
  const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
    PyErr_Clear();  // NumPy's error for an array of several elements names no argument
    refuse_type(value, name, "a whole number");
  }
  int overflow = 0;
  const long long result = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  const bool is_below = overflow < 0 || result < low;
  if (is_below || overflow > 0 || result > high) {
    // The call that takes the number checks its lower bound, and reports a violation itself.
    const bool is_long = high > std::numeric_limits<int>::max();
    throw InvalidArgument(
        std::string(name) + " is " +
        (overflow < 0   ? "too small"
         : overflow > 0 ? "too large"
                        : std::to_string(result)) +
        (is_below ? (is_long ? ", expected a number of 64 bits" : ", expected a number of 32 bits")
                  : ", expected at most " + std::to_string(high)));
  }
  return result;
}

}  // namespace

std::string name_of_type(nb::handle value) {
#ifdef Py_LIMITED_API  // the limited API hides a type's fields
  const nb::handle type = value.type();
  std::string name = nb::cast<std::string>(type.attr("__name__"));
  const nb::object module = nb::getattr(type, "__module__", nb::none());
  if (!nb::isinstance<nb::str>(module)) return name;
  const std::string home = nb::cast<std::string>(module);
  return home == "builtins" || home == "__main__" ? name : home + "." + name;
#else
  return Py_TYPE(value.ptr())->tp_name;
#endif
}

std::string type_in_words(nb::handle value) {
  if (value.is_none()) return "None";
  const std::string name = name_of_type(value);
  const bool is_vowel = std::string_view("aeioAEIO").find(name.front()) != std::string_view::npos;
  return (is_vowel ? "an " : "a ") + name;
}

std::int64_t long_argument(nb::handle value, const char* name) {
  using Limits = std::numeric_limits<std::int64_t>;
  return number_between(value, name, Limits::min(), Limits::max());
}

int integer_argument(nb::handle value, const char* name) {
  using Limits = std::numeric_limits<int>;
  return static_cast<int>(number_between(value, name, Limits::min(), Limits::max()));
}

std::vector<std::int64_t> long_list_argument(nb::handle values, const char* name) {
  const nb::object iterator = iterator_of(values, name, "a list of whole numbers");
  std::vector<std::int64_t> result;
  while (PyObject* entry = PyIter_Next(iterator.ptr())) {
    const nb::object owned = nb::steal(entry);
    result.push_back(long_argument(owned, element_name(name, result.size()).c_str()));
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return result;
}

bool flag_argument(nb::handle value, const char* name) {
  if (PyBool_Check(value.ptr())) return value.is(Py_True);
  const std::string type = name_of_type(value);
  if (type == "numpy.bool" || type == "numpy.bool_") return PyObject_IsTrue(value.ptr()) == 1;
  refuse_type(value, name, "True or False");
}

std::string text_argument(nb::handle value, const char* name) {
  if (!PyUnicode_Check(value.ptr())) refuse_type(value, name, "a str");
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &length);
  if (text == nullptr) {
    PyErr_Clear();
    throw InvalidArgument(std::string(name) +
                          " holds lone surrogates, which UTF-8 cannot say; give other text");
  }
  return {text, static_cast<std::size_t>(length)};
}

std::string words_argument(nb::handle value, const char* name) {
  if (!PyUnicode_Check(value.ptr())) refuse_type(value, name, "a str");
  const nb::object bytes =
      steal_or_throw(PyUnicode_AsEncodedString(value.ptr(), "utf-8", "backslashreplace"));
  return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

void require_iterable(nb::handle value, const char* name, const char* wanted) {
  iterator_of(value, name, wanted);
}

std::string path_argument(nb::handle value, const char* name) {
  const nb::object bytes = nb::module_::import_("os").attr("fsencode")(value);
  std::string path(PyBytes_AsString(bytes.ptr()),
                   static_cast<std::size_t>(PyBytes_Size(bytes.ptr())));
  if (path.find('\0') != std::string::npos) {
    throw InvalidArgument(std::string(name) + " holds a zero byte, which no file's name does");
  }
  return path;
}

std::vector<std::string> engines_argument(nb::handle engines) {
  if (engines.is_none()) return {};
  constexpr const char* kWanted = "a list of names, such as [\"shm\"]";
  // A str would be read as a list of its letters.
  if (PyUnicode_Check(engines.ptr())) refuse_type(engines, "engines", kWanted);
  const nb::object iterator = iterator_of(engines, "engines", kWanted);
  std::vector<std::string> names;
  while (PyObject* entry = PyIter_Next(iterator.ptr())) {
    const nb::object owned = nb::steal(entry);
    names.push_back(text_argument(owned, element_name("engines", names.size()).c_str()));
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return names;
}

std::string element_name(const char* name, std::size_t i) {
  return std::string(name) + "[" + std::to_string(i) + "]";
}

std::span<const std::byte> bytes_of(const nb::bytes& bytes) noexcept {
  return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
}

nb::object steal_or_throw(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

nb::str to_text(std::string_view text) {
  PyObject* result =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (result == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(result);
}

}  // namespace hocket::python
