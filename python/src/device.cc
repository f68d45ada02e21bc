#include "device.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "hocket/error.h"

namespace hocket::python {
namespace {

std::optional<std::uintptr_t> handle_in(nb::handle object) {
  if (!PyLong_Check(object.ptr())) return std::nullopt;
  const std::size_t value = PyLong_AsSize_t(object.ptr());
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

// The attribute, if it is there and a number.
std::optional<std::uintptr_t> handle_in(nb::handle object, const char* attribute) {
  const nb::object value = nb::steal(PyObject_GetAttrString(object.ptr(), attribute));
  if (!value.is_valid()) {
    PyErr_Clear();
    return std::nullopt;
  }
  return handle_in(value);
}

bool needs_hold(const Array& array, const std::optional<StreamRef>& stream) {
  return array.is_on_gpu() && (array.lease || array.stream != stream);
}

}  // namespace

std::optional<StreamRef> stream_argument(nb::handle stream) {
  if (stream.is_none()) return std::nullopt;
  if (const auto raw = handle_in(stream)) return StreamRef::from_handle(*raw);
  // PyTorch, then CuPy.
  for (const char* attribute : {"cuda_stream", "ptr"}) {
    if (const auto raw = handle_in(stream, attribute)) return StreamRef::from_handle(*raw);
  }
  if (nb::hasattr(stream, "__cuda_stream__")) {
    const nb::object pair = stream.attr("__cuda_stream__")();  // version, handle
    if (const auto raw = handle_in(nb::object(pair[1]))) return StreamRef::from_handle(*raw);
  }
  if (nb::hasattr(stream, "handle")) {  // Numba: a ctypes pointer, None for the default stream
    const nb::object value = nb::getattr(stream.attr("handle"), "value", nb::none());
    if (value.is_none()) return StreamRef();
    if (const auto raw = handle_in(value)) return StreamRef::from_handle(*raw);
  }
  throw InvalidArgument(std::string("stream is a ") + Py_TYPE(stream.ptr())->tp_name +
                        "; give a stream of CuPy, PyTorch or Numba, or its handle as an int");
}

namespace {

// `arrays` are pointers to what is retained.
template <typename Arrays>
void retain_all(Seat& seat, const Arrays& arrays, const std::optional<StreamRef>& stream) {
  std::deque<WorkHandle>& held = *seat.held;
  while (!held.empty() && held.front().work.test()) held.pop_front();
  if (!std::ranges::any_of(arrays, [&](Array* one) { return needs_hold(*one, stream); })) return;
  WorkHandle handle{.result = nb::none()};
  for (Array* one : arrays) keep(handle, *one);
  handle.work = seat.comm.stream_mark(stream.value_or(StreamRef()));
  held.push_back(std::move(handle));
}

}  // namespace

void retain(Seat& seat, std::initializer_list<Array*> arrays, std::optional<StreamRef> stream) {
  retain_all(seat, arrays, stream);
}

void retain(Seat& seat, std::vector<Array>& arrays, std::optional<StreamRef> stream) {
  std::vector<Array*> all;
  for (Array& array : arrays) all.push_back(&array);
  retain_all(seat, all, stream);
}

}  // namespace hocket::python
