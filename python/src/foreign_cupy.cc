// Reads CuPy's arrays by their attributes. Reading their CUDA array interface would take several
// times as long, because CuPy makes a dictionary of strings and tuples for each read.
#include <string_view>

#include "foreign_parts.h"

namespace hocket::python {
namespace {

nb::object name_of_attribute(const char* name) {
  return nb::steal(PyUnicode_InternFromString(name));
}

// The names of the attributes of CuPy's arrays, interned once.
struct Words {
  nb::object data = name_of_attribute("data");
  nb::object ptr = name_of_attribute("ptr");
  nb::object device_id = name_of_attribute("device_id");
  nb::object dtype = name_of_attribute("dtype");
  nb::object size = name_of_attribute("size");
  nb::object c_contiguous = name_of_attribute("_c_contiguous");
  nb::object f_contiguous = name_of_attribute("_f_contiguous");
  nb::object current_stream = nb::module_::import_("cupy").attr("cuda").attr("get_current_stream");
};

const Words& words() {
  static const auto* const made = new Words;  // never destroyed: may be used while Python ends
  return *made;
}

nb::object get(nb::handle object, const nb::object& name) {
  PyObject* value = PyObject_GetAttr(object.ptr(), name.ptr());
  if (value == nullptr) throw nb::python_error();
  return nb::steal(value);
}

std::size_t number(const nb::object& value) {
  const std::size_t result = PyLong_AsSize_t(value.ptr());
  if (result == static_cast<std::size_t>(-1) && PyErr_Occurred() != nullptr) {
    throw nb::python_error();
  }
  return result;
}

bool is_true(nb::handle object, const nb::object& name) {
  return get(object, name).ptr() == Py_True;
}

}  // namespace

bool is_cupy_array(nb::handle object) {
  const nb::object module = object.type().attr("__module__");
  if (!nb::isinstance<nb::str>(module)) return false;
  const std::string_view home = nb::cast<nb::str>(module).c_str();
  // Excludes subclasses by packages that extend CuPy. CuPy has the private attributes since version
  // 5.
  return (home == "cupy" || home == "cupy._core.core") && nb::hasattr(object, "_c_contiguous") &&
         nb::hasattr(object, "_f_contiguous");
}

Array from_cupy(nb::handle object, const char* name) {
  const Words& w = words();
  const DType dtype = dtype_of_numpy(get(object, w.dtype), name);
  const bool c = is_true(object, w.c_contiguous);
  const bool f = is_true(object, w.f_contiguous);
  if (!c && !f) refuse(name, kNotContiguous);
  const nb::object data = get(object, w.data);
  const nb::object device = get(data, w.device_id);
  const nb::object stream =
      nb::steal(PyObject_CallFunctionObjArgs(w.current_stream.ptr(), device.ptr(), nullptr));
  if (!stream.is_valid()) throw nb::python_error();
  return {.data = reinterpret_cast<void*>(number(get(data, w.ptr))),
          .count = number(get(object, w.size)),
          .dtype = dtype,
          .order = c && f ? MemoryOrder::kAny
                   : c    ? MemoryOrder::kC
                          : MemoryOrder::kFortran,
          .writable = true,
          .object = object,
          .memory = MemoryKind::kCuda,
          .device = static_cast<int>(number(device)),
          .stream = StreamRef::from_handle(number(get(stream, w.ptr))),
          .is_at_work = true};
}

}  // namespace hocket::python
