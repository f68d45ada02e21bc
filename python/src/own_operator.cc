#include "own_operator.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "communicator_object.h"
#include "errors.h"
#include "hocket/error.h"

namespace hocket::python {
namespace {

nb::object numpy(const char* name) { return nb::module_::import_("numpy").attr(name); }

// Returns str(value), or an empty text if str() fails.
std::string text_of(nb::handle value) {
  const nb::object text = nb::steal(PyObject_Str(value.ptr()));
  const nb::object bytes =
      nb::steal(text.is_valid() ? PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace")
                                : nullptr);
  if (!bytes.is_valid()) {
    PyErr_Clear();
    return "";
  }
  return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

std::string text_of_raised(const nb::python_error& error) {
  const std::string name = text_of(error.type().attr("__name__"));
  const std::string what = text_of(error.value());
  return what.empty() ? name : name + ": " + what;
}

}  // namespace

std::shared_ptr<OwnOperator> OwnOperator::of(nb::handle op) {
  if (PyUnicode_Check(op.ptr())) return nullptr;
  const nb::object type = nb::module_::import_("hocket.operators").attr("Operator");
  const int is_one = PyObject_IsInstance(op.ptr(), type.ptr());
  if (is_one < 0) throw nb::python_error();
  return is_one == 0 ? nullptr : std::shared_ptr<OwnOperator>(new OwnOperator(op));
}

OwnOperator::OwnOperator(nb::handle op)
    : object_(nb::borrow(op)), takes_rows_(nb::cast<bool>(op.attr("_rows"))) {
  if (!op.attr("_dtype").is_none()) op_.dtype = dtype_argument(op.attr("_dtype"));
  op_.identity = nb::cast<std::uint64_t>(op.attr("_identity")) << 8;
  if (op_.dtype) op_.identity |= static_cast<std::uint64_t>(*op_.dtype) + 1;
  const nb::object address = op.attr("_address");
  if (!address.is_none()) {
    op_.combine = reinterpret_cast<Combine>(nb::cast<std::uintptr_t>(address));
    return;
  }
  function_ = op.attr("_function");
  is_ufunc_ = nb::cast<bool>(op.attr("_is_ufunc"));
  op_.combine = &OwnOperator::combine;
  op_.context = this;
}

void OwnOperator::fit(const Array& cut, const char* name) {
  dtype_ = cut.dtype;
  if (!takes_rows_) return;
  require_c_order(cut, name);
  const Shape shape = shape_of(cut);
  if (shape.size() > 1) row_.assign(shape.begin() + 1, shape.end());
  for (const std::ptrdiff_t extent : row_) op_.unit *= static_cast<std::size_t>(extent);
  // A row without elements counts as one element, because a unit cannot be 0.
  op_.unit = std::max<std::size_t>(1, op_.unit);
}

void OwnOperator::rethrow(const std::exception_ptr& error_of_call) {
  const GilTaken gil;
  const nb::object cause = std::exchange(raised_, nb::object());
  if (!cause.is_valid()) std::rethrow_exception(error_of_call);
  if (PyObject_IsInstance(cause.ptr(), PyExc_Exception) != 1) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(cause.ptr())), cause.ptr());
    throw nb::python_error();
  }
  const nb::object error = to_exception(error_of_call);
  PyException_SetCause(error.ptr(), nb::object(cause).release().ptr());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

void OwnOperator::combine(void* left, const void* right, std::size_t count, void* own) {
  auto& self = *static_cast<OwnOperator*>(own);
  const Callback callback;
  if (!callback.may_run()) throw std::runtime_error("its process is ending");
  // The size of a block. The allocator reuses memory of this size, and a block stays in the cache.
  constexpr std::size_t kBlockBytes = std::size_t{64} << 10;
  const std::size_t unit = self.op_.unit * size_of(self.dtype_);
  const std::size_t most =
      self.is_ufunc_ ? count : std::max<std::size_t>(1, kBlockBytes / unit) * self.op_.unit;
  with_gil([&] {
    try {
      for (std::size_t first = 0; first < count; first += most) {
        const std::size_t at = first * size_of(self.dtype_);
        self.combine_block(static_cast<std::byte*>(left) + at,
                           static_cast<const std::byte*>(right) + at,
                           std::min(most, count - first));
      }
    } catch (const nb::python_error& error) {
      self.raised_ = nb::borrow(error.value());
      throw std::runtime_error(text_of_raised(error));
    }
  });
}

// Calls the user's function. If the function forks, the child process ends here: the memory and
// threads of the call belong to the parent.
nb::object OwnOperator::called(const nb::object& left, const nb::object& right) const {
  const pid_t process = ::getpid();
  const auto end_child = [process](const nb::object& error) {
    if (::getpid() == process) return;
    nb::module_::import_("hocket._jobs.forked").attr("end_child")(error);
  };
  try {
    nb::object result = function_(left, right);
    end_child(nb::none());
    return result;
  } catch (const nb::python_error& error) {
    end_child(nb::borrow(error.value()));
    throw;
  }
}

void OwnOperator::combine_block(void* left, const void* right, std::size_t count) {
  Shape shape{static_cast<std::ptrdiff_t>(count / op_.unit)};
  shape.insert(shape.end(), row_.begin(), row_.end());
  const std::size_t bytes = count * size_of(dtype_);
  if (is_ufunc_) {
    const nb::object a = numpy_view(left, dtype_, shape, nb::none());
    const nb::object b = numpy_view(const_cast<void*>(right), dtype_, shape, nb::none());
    function_(a, b, nb::arg("out") = a);
    return;
  }
  // The function may keep its arguments beyond the call, so it gets copies.
  const auto copy_of = [&](const void* block) {
    nb::object copy = new_numpy_array(dtype_, shape);
    std::memcpy(read_array(copy, "a block").data, block, bytes);
    return copy;
  };
  const nb::object a = copy_of(left);
  const nb::object result = checked(called(a, copy_of(right)), a);
  std::memcpy(left, read_array(result, "the result").data, bytes);
}

// Checks a result of the function. Returns it as a contiguous array of the operator's dtype.
nb::object OwnOperator::checked(nb::object result, const nb::object& like) const {
  const nb::object array = numpy("asanyarray")(result);
  if (!array.attr("shape").equal(like.attr("shape"))) {
    throw std::runtime_error("it returned an array of shape " + text_of(array.attr("shape")) +
                             " for two of shape " + text_of(like.attr("shape")));
  }
  const nb::object given = array.attr("dtype"), wanted = like.attr("dtype");
  if (!nb::cast<bool>(numpy("can_cast")(given, wanted, "same_kind"))) {
    throw std::runtime_error("it returned " + text_of(given) + " for " + text_of(wanted));
  }
  return numpy("ascontiguousarray")(array, wanted);
}

}  // namespace hocket::python
