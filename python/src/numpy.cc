// Reads and makes NumPy arrays. No other file includes NumPy's C interface.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <string>
#include <string_view>

#include "arguments.h"
#include "array.h"
#include "foreign.h"
#include "foreign_parts.h"
#include "hocket/error.h"
#include "immutable.h"

namespace hocket::python {
namespace {

PyArrayObject* as_numpy(nb::handle object) {
  return reinterpret_cast<PyArrayObject*>(object.ptr());
}

// Returns the name of a scalar type without its package: "bfloat16" for "ml_dtypes.bfloat16".
std::string short_name(const PyTypeObject* type) {
#ifdef Py_LIMITED_API
  auto* object = reinterpret_cast<PyObject*>(const_cast<PyTypeObject*>(type));
  const std::string name = nb::cast<std::string>(nb::handle(object).attr("__name__"));
#else
  const std::string name = type->tp_name;
#endif
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

std::optional<DType> dtype_of_name(std::string_view name) {
  if (name == "bfloat16") return DType::kBFloat16;
  if (name == "float8_e4m3fn") return DType::kFloat8E4M3;
  if (name == "float8_e5m2") return DType::kFloat8E5M2;
  return std::nullopt;
}

std::optional<DType> dtype_of(const PyArray_Descr* descr) {
  switch (descr->type_num) {
    case NPY_FLOAT:
      return DType::kFloat32;
    case NPY_DOUBLE:
      return DType::kFloat64;
    case NPY_HALF:
      return DType::kFloat16;
    case NPY_CFLOAT:
      return DType::kComplex64;
    case NPY_CDOUBLE:
      return DType::kComplex128;
    case NPY_BOOL:
      return DType::kBool;
    case NPY_BYTE:
    case NPY_SHORT:
    case NPY_INT:
    case NPY_LONG:
    case NPY_LONGLONG:
      return integer(8 * static_cast<unsigned>(PyDataType_ELSIZE(descr)), true);
    case NPY_UBYTE:
    case NPY_USHORT:
    case NPY_UINT:
    case NPY_ULONG:
    case NPY_ULONGLONG:
      return integer(8 * static_cast<unsigned>(PyDataType_ELSIZE(descr)), false);
    default:
      return dtype_of_name(short_name(descr->typeobj));
  }
}

std::string joined(const char* a, const char* b) { return std::string(a) + b; }

// Does the same as by_way_of_copy, but without the advice to copy back if the array is read-only.
std::string by_way_of_copy_of(bool is_writable,
                              const std::string& made,
                              const char* name,
                              const std::string& brought_back = {}) {
  if (is_writable) return by_way_of_copy(made, name, brought_back);
  return "call with y = " + made + ", in which a result comes, as " + name + " is read-only";
}

// Tells which types of numbers occur among the Python objects of an array.
struct Numbers {
  bool has_float = false;
  bool has_complex = false;
  bool has_long = false;   // an integer that float64 would round
  bool has_huge = false;   // an integer of more than 64 bits
  bool has_other = false;  // no number, or a number of a type with more digits than float64
};

void count_in(Numbers& numbers, nb::handle one) {
  constexpr long long kExact = 1LL << 53;
  PyObject* const p = one.ptr();
  if (PyComplex_Check(p) != 0 || PyArray_IsScalar(p, CFloat)) {
    numbers.has_complex = true;
  } else if (PyFloat_Check(p) != 0 || PyArray_IsScalar(p, Half) || PyArray_IsScalar(p, Float)) {
    numbers.has_float = true;
  } else if (PyLong_Check(p) != 0 || PyArray_IsScalar(p, Integer)) {
    const nb::object number = steal_or_throw(PyNumber_Index(p));
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    numbers.has_huge |= overflow != 0;
    numbers.has_long |= overflow != 0 || value > kExact || value < -kExact;
  } else {
    numbers.has_other = true;
  }
}

// Returns advice for an array of Python objects: a dtype that keeps all digits of the array's
// numbers.
std::string mend_of_objects(PyArrayObject* array, const char* name, bool is_writable) {
  Numbers numbers;
  const nb::handle object(reinterpret_cast<PyObject*>(array));
  for (nb::handle one : nb::object(object.attr("flat"))) count_in(numbers, one);
  const bool is_rounded = numbers.has_float || numbers.has_complex;
  const std::string exact = std::string("collect them by all_gather_object(") + name +
                            ", allow_pickle=True), and combine those in Python";
  const std::string others =
      ". Objects travel by broadcast_object and the like, with allow_pickle=True";
  if (numbers.has_other || numbers.has_huge || (is_rounded && numbers.has_long)) {
    return "No dtype holds its objects: " + exact + others;
  }
  const bool is_whole = !is_rounded && PyArray_SIZE(array) != 0;
  const char* dtype = numbers.has_complex ? "complex128" : is_whole ? "int64" : "float64";
  return std::string("To combine its numbers") +
         (is_whole ? ", where the results fit into 64 bits, " : ", ") +
         by_way_of_copy_of(is_writable, joined(name, ".astype(numpy.") + dtype + ")", name) +
         (is_whole ? "; else " + exact : "") + others;
}

// Returns advice on how to send arrays of a dtype that hocket does not support. If the elements can
// be combined, also advises how to combine them. The advice is right for every call and every
// memory layout, because it makes a copy in C order and copies the result back.
std::string mend_of_dtype(PyArrayObject* array, const char* name) {
  const PyArray_Descr* descr = PyArray_DESCR(array);
  const bool is_writable = PyArray_ISWRITEABLE(array);
  if (descr->type_num == NPY_OBJECT) return mend_of_objects(array, name, is_writable);
  if (PyDataType_REFCHK(descr)) {
    return "Its elements are Python's, and travel by broadcast_object and the like, with "
           "allow_pickle=True";
  }
  if (descr->kind == 'm' || descr->kind == 'M') {
    return "Call with " + joined(name, ".view(numpy.int64)") +
           ". NaT is the least integer there: max passes over it, and sums with it are wrong. "
           "Where there may be one, combine numpy.isnat(" +
           name + ") by max as well, and set NaT where that is true";
  }
  const std::string bytes = by_way_of_copy_of(
      is_writable,
      joined("numpy.ascontiguousarray(", name) + ")[..., None].view(numpy.uint8)",
      name,
      joined(name, "[...] = y.view(") + joined(name, ".dtype).reshape(") + joined(name, ".shape)"));
  const std::string sent = "To send it, " + bytes + "; a new array that the call returns is one " +
                           "of bytes as well, read by .view(" + name + ".dtype)[..., 0]";
  if (descr->type_num == NPY_LONGDOUBLE || descr->type_num == NPY_CLONGDOUBLE) {
    const std::string rounded = descr->type_num == NPY_CLONGDOUBLE ? "complex128" : "float64";
    return sent + ". To combine its numbers, with fewer digits, " +
           by_way_of_copy_of(is_writable, joined(name, ".astype(numpy.") + rounded + ")", name);
  }
  return sent + ". Its elements cannot be combined";
}

// Throws for a dtype that hocket does not support. `array` is an array of this dtype, or null.
[[noreturn]] void refuse_dtype(const PyArray_Descr* descr,
                               const char* name,
                               PyArrayObject* array = nullptr) {
  const nb::str text(nb::handle(reinterpret_cast<const PyObject*>(descr)));
  const bool is_argument = std::string_view(name) == "dtype";
  throw InvalidArgument(std::string(name) + (is_argument ? " is " : " has dtype ") + text.c_str() +
                        ", which hocket does not take. " +
                        (array == nullptr ? "" : mend_of_dtype(array, name) + ". ") +
                        "It takes bool, the integers of 8 to 64 bits, float16, bfloat16, float32, "
                        "float64, complex64, complex128, float8_e4m3fn and float8_e5m2");
}

// Throws for a masked array. A call would send masked elements like others, and the result would
// keep the old mask.
void refuse_mask(nb::handle object, const char* name) {
  const nb::module_ masked = nb::module_::import_("numpy.ma");
  if (masked.attr("getmask")(object).is(masked.attr("nomask"))) return;
  throw InvalidArgument(std::string(name) + " has a mask, which hocket does not carry; call with " +
                        "y = " + name + ".filled(value), in which a result is whole, or with " +
                        name + ".data to go without the mask");
}

Array read_numpy(nb::handle object, const char* name) {
  if (!PyArray_CheckExact(object.ptr())) refuse_mask(object, name);
  PyArrayObject* array = as_numpy(object);
  const PyArray_Descr* descr = PyArray_DESCR(array);
  const int flags = PyArray_FLAGS(array);
  constexpr int kEitherOrder = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS;
  const int order = flags & kEitherOrder;
  const bool is_writable = (flags & NPY_ARRAY_WRITEABLE) != 0;
  if (order == 0) {
    throw InvalidArgument(
        joined(name, " is not contiguous; ") +
        by_way_of_copy_of(is_writable, joined("numpy.ascontiguousarray(", name) + ")", name));
  }
  // This check precedes the check of the dtype, whose advice assumes native byte order.
  if (!PyArray_ISNOTSWAPPED(array)) {
    throw InvalidArgument(
        joined(name, " is byte-swapped; ") +
        by_way_of_copy_of(is_writable,
                          joined(name, ".astype(") + joined(name, ".dtype.newbyteorder(\"=\"))"),
                          name));
  }
  const std::optional<DType> dtype = dtype_of(descr);
  if (!dtype) refuse_dtype(descr, name, array);
  return {.data = PyArray_DATA(array),
          .count = static_cast<std::size_t>(PyArray_SIZE(array)),
          .dtype = *dtype,
          .order = order == kEitherOrder             ? MemoryOrder::kAny
                   : order == NPY_ARRAY_C_CONTIGUOUS ? MemoryOrder::kC
                                                     : MemoryOrder::kFortran,
          .writable = is_writable,
          .object = object};
}

// Returns NumPy's type number. Returns nothing for types that are not built into NumPy.
std::optional<int> numpy_number(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return NPY_BOOL;
    case DType::kInt8:
      return NPY_INT8;
    case DType::kInt16:
      return NPY_INT16;
    case DType::kInt32:
      return NPY_INT32;
    case DType::kInt64:
      return NPY_INT64;
    case DType::kUInt8:
      return NPY_UINT8;
    case DType::kUInt16:
      return NPY_UINT16;
    case DType::kUInt32:
      return NPY_UINT32;
    case DType::kUInt64:
      return NPY_UINT64;
    case DType::kFloat16:
      return NPY_FLOAT16;
    case DType::kFloat32:
      return NPY_FLOAT32;
    case DType::kFloat64:
      return NPY_FLOAT64;
    case DType::kComplex64:
      return NPY_COMPLEX64;
    case DType::kComplex128:
      return NPY_COMPLEX128;
    case DType::kBFloat16:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return std::nullopt;
  }
  return std::nullopt;
}

const char* ml_dtypes_name(DType dtype) {
  switch (dtype) {
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kFloat8E4M3:
      return "float8_e4m3fn";
    default:
      return "float8_e5m2";
  }
}

// Returns a new reference. NumPy's constructors take its ownership.
PyArray_Descr* descriptor(DType dtype) {
  if (const auto number = numpy_number(dtype)) return PyArray_DescrFromType(*number);
  nb::object scalar;
  try {
    scalar = nb::module_::import_("ml_dtypes").attr(ml_dtypes_name(dtype));
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    throw InvalidArgument("NumPy has no " + std::string(name_of(dtype)) +
                          " of its own: install the package ml_dtypes");
  }
  PyArray_Descr* result = nullptr;
  if (PyArray_DescrConverter(scalar.ptr(), &result) != NPY_SUCCEED) throw nb::python_error();
  return result;
}

}  // namespace

void import_numpy() {
  // Does not call PyArray_ImportNumPyAPI, which would print an error, even that of Ctrl-C, and
  // raise another error.
  if (_import_array() < 0) throw nb::python_error();
}

Array read_array(nb::handle object, const char* name) {
  if (PyArray_Check(object.ptr())) return read_numpy(object, name);
  return read_foreign(object, name);
}

Array writable_array(nb::handle object, const char* name) {
  Array array = read_array(object, name);
  if (!array.writable) refuse_unwritable(object, name);
  return array;
}

std::string by_way_of_copy(const std::string& made, const char* name, std::string brought_back) {
  if (brought_back.empty()) brought_back = joined(name, "[...] = y");
  return "call with y = " + made + ", and after it " + brought_back + " if the call writes to " +
         name;
}

void require_c_order(const Array& array, const char* name) {
  if (array.order != MemoryOrder::kFortran) return;
  const bool is_tensor = nb::hasattr(array.object, "contiguous");
  const bool is_cupy = is_of_package(array.object, "cupy");
  const std::string copy =
      is_tensor ? joined(name, ".contiguous()")
                : joined(is_cupy ? "cupy" : "numpy", ".ascontiguousarray(") + name + ")";
  throw InvalidArgument(
      std::string(name) +
      " is in Fortran order, and this call cuts arrays along their first axis; " +
      by_way_of_copy_of(
          array.writable, copy, name, is_tensor ? joined(name, ".copy_(y)") : std::string()));
}

void require_same_order(const Array& a, const char* a_name, const Array& b, const char* b_name) {
  if (a.order == b.order || a.order == MemoryOrder::kAny || b.order == MemoryOrder::kAny) return;
  throw InvalidArgument(std::string(a_name) + " and " + b_name +
                        " differ in order: one is in C, the other in Fortran order; their elements "
                        "would not correspond");
}

Shape shape_of(const Array& array) {
  if (PyArray_Check(array.object.ptr())) {
    PyArrayObject* numpy = as_numpy(array.object);
    return {PyArray_DIMS(numpy), PyArray_DIMS(numpy) + PyArray_NDIM(numpy)};
  }
  if (is_number(array.object)) return {};
  if (!nb::hasattr(array.object, "shape")) return {static_cast<std::ptrdiff_t>(array.count)};
  Shape shape;
  for (nb::handle extent : array.object.attr("shape")) {
    shape.push_back(nb::cast<std::ptrdiff_t>(extent));
  }
  return shape;
}

bool is_strided_numpy(nb::handle object, const char* name) {
  if (!PyArray_Check(object.ptr())) return false;
  constexpr int kEitherOrder = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS;
  if ((PyArray_FLAGS(as_numpy(object)) & kEitherOrder) != 0) return false;
  if (!PyArray_CheckExact(object.ptr())) refuse_mask(object, name);
  return true;
}

bool is_plain_numpy(nb::handle object) noexcept { return PyArray_CheckExact(object.ptr()); }

bool is_numpy_subclass(nb::handle object) noexcept {
  return PyArray_Check(object.ptr()) && !PyArray_CheckExact(object.ptr());
}

bool is_numpy_scalar(nb::handle object) noexcept { return PyArray_IsScalar(object.ptr(), Generic); }

bool is_number(nb::handle object) noexcept {
  PyObject* const p = object.ptr();
  return PyLong_Check(p) != 0 || PyFloat_Check(p) != 0 || PyComplex_Check(p) != 0 ||
         is_numpy_scalar(object);
}

namespace {

// Owns the memory of a number that was passed as an array.
class NumberInMemory final : public Lease {
 public:
  explicit NumberInMemory(nb::object memory) : memory_(std::move(memory)) {}

 private:
  nb::object memory_;
};

nb::object array_of_number(nb::handle number, const char* name) {
  if (is_numpy_scalar(number)) return array_of_numpy_scalar(number);
  if (PyLong_Check(number.ptr()) == 0 || PyBool_Check(number.ptr()) != 0) {
    return nb::module_::import_("numpy").attr("array")(number);
  }
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) {
    throw InvalidArgument(std::string(name) + " is an int of more than 64 bits; give a float");
  }
  return nb::module_::import_("numpy").attr("array")(number, "int64");
}

}  // namespace

Array read_number(nb::handle number, const char* name) {
  nb::object memory = array_of_number(number, name);
  Array array = read_numpy(memory, name);
  array.object = number;
  array.writable = false;
  array.lease = std::make_unique<NumberInMemory>(std::move(memory));
  return array;
}

nb::object array_of_numpy_scalar(nb::handle scalar) {
  return steal_or_throw(PyArray_FromScalar(scalar.ptr(), nullptr));
}

nb::object new_numpy_array(DType dtype, const Shape& shape) {
  return steal_or_throw(PyArray_NewFromDescr(&PyArray_Type,
                                             descriptor(dtype),
                                             static_cast<int>(shape.size()),
                                             shape.data(),
                                             nullptr,
                                             nullptr,
                                             0,
                                             nullptr));
}

namespace {

nb::object new_gpu_array_like(const Array& like, const Shape& shape) {
  const auto made_by = [&](const char* module, const char* function) {
    return nb::module_::import_(module).attr(function)(tuple_of(shape), like.object.attr("dtype"));
  };
  if (is_of_package(like.object, "cupy")) return made_by("cupy", "empty");
  if (is_of_package(like.object, "numba")) return made_by("numba.cuda", "device_array");
  throw InvalidArgument(std::string("a new array like ") + name_of_type(like.object) +
                        " cannot be made here; give out=");
}

}  // namespace

nb::object new_array_like(const Array& like, const Shape& shape) {
  if (!PyArray_Check(like.object.ptr())) {
    if (is_immutable(like.object)) return new_immutable(like, shape);
    if (nb::hasattr(like.object, "new_empty")) {  // PyTorch
      return like.object.attr("new_empty")(tuple_of(shape));
    }
    if (like.is_on_gpu()) return new_gpu_array_like(like, shape);
    return new_numpy_array(like.dtype, shape);
  }
  PyArray_Descr* descr = PyArray_DESCR(as_numpy(like.object));
  Py_INCREF(reinterpret_cast<PyObject*>(descr));
  return steal_or_throw(
      PyArray_NewFromDescr(&PyArray_Type,
                           descr,
                           static_cast<int>(shape.size()),
                           shape.data(),
                           nullptr,
                           nullptr,
                           like.order == MemoryOrder::kFortran ? NPY_ARRAY_F_CONTIGUOUS : 0,
                           nullptr));
}

nb::object new_int32_beside(const Array& like) {
  const nb::tuple shape = tuple_of(shape_of(like));
  const auto made_by = [&](const char* module, const char* function, auto... more) {
    return nb::object(
        nb::module_::import_(module).attr(function)(shape, nb::str("int32"), more...));
  };
  const nb::str order(like.order == MemoryOrder::kFortran ? "F" : "C");
  if (!like.is_on_gpu()) return made_by("numpy", "empty", order);
  if (nb::hasattr(like.object, "new_empty")) {  // PyTorch
    const nb::object dtype = nb::module_::import_("torch").attr("int32");
    return like.object.attr("new_empty")(shape, nb::arg("dtype") = dtype);
  }
  if (is_of_package(like.object, "cupy")) return made_by("cupy", "empty", order);
  if (is_of_package(like.object, "numba")) return made_by("numba.cuda", "device_array");
  throw InvalidArgument(std::string("an array of ranks beside ") + name_of_type(like.object) +
                        " cannot be made here; pass an array of CuPy, PyTorch or Numba");
}

nb::object numpy_view(void* data, DType dtype, const Shape& shape, nb::handle owner) {
  nb::object view = steal_or_throw(PyArray_NewFromDescr(&PyArray_Type,
                                                        descriptor(dtype),
                                                        static_cast<int>(shape.size()),
                                                        shape.data(),
                                                        nullptr,
                                                        data,
                                                        NPY_ARRAY_CARRAY,
                                                        nullptr));
  if (PyArray_SetBaseObject(as_numpy(view), nb::borrow(owner).release().ptr()) < 0) {
    throw nb::python_error();
  }
  return view;
}

DType dtype_of_numpy(nb::handle dtype, const char* name) {
  if (!PyArray_DescrCheck(dtype.ptr())) {
    throw InvalidArgument(std::string(name) + " has a dtype that is not NumPy's");
  }
  const auto* descr = reinterpret_cast<const PyArray_Descr*>(dtype.ptr());
  const std::optional<DType> result = dtype_of(descr);
  if (!result) refuse_dtype(descr, name);
  return *result;
}

DType dtype_argument(nb::handle dtype) {
  if (PyUnicode_Check(dtype.ptr())) {
    const std::string name = text_argument(dtype, "dtype");
    if (const auto known = dtype_of_name(name)) return *known;
    if (name == "float8_e4m3") return DType::kFloat8E4M3;
  }
  PyArray_Descr* descr = nullptr;
  if (PyArray_DescrConverter(dtype.ptr(), &descr) != NPY_SUCCEED) {
    PyErr_Clear();
    // PyTorch's dtypes print as "torch.float32".
    const std::string text = text_argument(nb::str(dtype), "dtype");
    const std::string name = text.substr(text.rfind('.') + 1);
    if (const auto known = dtype_of_name(name)) return *known;
    return dtype_from_name(name);
  }
  const nb::object owner = nb::steal(reinterpret_cast<PyObject*>(descr));
  const std::optional<DType> result = dtype_of(descr);
  if (!result) refuse_dtype(descr, "dtype");
  return *result;
}

}  // namespace hocket::python
