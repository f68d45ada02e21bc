#include "foreign.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.h"
#include "foreign_parts.h"
#include "immutable.h"

namespace hocket::python {

bool is_of_package(nb::handle object, std::string_view package) {
  const nb::object module = nb::getattr(object.type(), "__module__", nb::none());
  return nb::isinstance<nb::str>(module) &&
         std::string_view(nb::cast<nb::str>(module).c_str()).starts_with(package);
}

namespace {

// Returns true for a tracer of JAX, which stands for an array while JAX traces a function.
bool is_tracer(nb::handle object) {
  for (nb::handle base : object.type().attr("__mro__")) {
    const nb::object module = nb::getattr(base, "__module__", nb::none());
    if (nb::isinstance<nb::str>(module) &&
        std::string_view(nb::cast<nb::str>(module).c_str()).starts_with("jax") &&
        std::string_view(nb::cast<nb::str>(base.attr("__name__")).c_str()) == "Tracer") {
      return true;
    }
  }
  return false;
}

enum class Way : std::uint8_t {
  kExchange,
  kCuPy,
  kInterface,
  kMethod,
  kBuffer,
  kNumber,
  kTracer,
  kNone
};

// Says how arrays of a type are read. It is kept for each type, because finding it out costs as
// much as reading an array.
struct KnownType {
  nb::object type;  // kept alive, so that no other type gets its address
  Way way = Way::kNone;
  const dlpack::ExchangeApi* api = nullptr;
  nb::object is_conj = {};  // PyTorch's method `is_conj`; null: the type has none
  nb::object is_neg = {};   // PyTorch's method `is_neg`; null: the type has none
};

KnownType find_way(nb::handle object) {
  KnownType known{.type = nb::borrow(object.type())};
  if (is_number(object)) {
    known.way = Way::kNumber;
    return known;
  }
  if (is_tracer(object)) {  // it has every attribute of an array
    known.way = Way::kTracer;
    return known;
  }
  known.api = exchange_api(object);
  if (known.api != nullptr) {
    known.way = Way::kExchange;
  } else if (is_cupy_array(object)) {
    known.way = Way::kCuPy;
  } else if (is_of_package(object, "cupy")) {
    known.way = Way::kInterface;  // CuPy's arrays are in GPU memory; cheaper to read than by DLPack
  } else if (nb::hasattr(object, "__dlpack__")) {
    // A type may have DLPack and the CUDA array interface. DLPack comes first, because it supports
    // more dtypes, and tells the kind of memory.
    known.way = Way::kMethod;
  } else if (nb::hasattr(object, "__cuda_array_interface__")) {
    known.way = Way::kInterface;
  } else if (PyObject_CheckBuffer(object.ptr())) {
    known.way = Way::kBuffer;
  }
  if (known.way == Way::kExchange || known.way == Way::kMethod) {
    known.is_conj = nb::getattr(known.type, "is_conj", nb::object());
    known.is_neg = nb::getattr(known.type, "is_neg", nb::object());
  }
  return known;
}

// The types of the last arrays. Guarded by the GIL, or by the mutex in a Python without GIL.
struct LastTypes {
  nb::ft_mutex mutex;
  std::vector<KnownType> kept;
};

// Returns a copy. Reading an array may run Python code, and meanwhile another thread may drop the
// entry.
KnownType way_of(nb::handle object) {
  constexpr std::size_t kKept = 16;
  static auto* const last = new LastTypes;  // never destroyed: may be used while Python ends
  const PyObject* type = object.type().ptr();
  {
    const nb::ft_lock_guard lock(last->mutex);
    for (const KnownType& known : last->kept) {
      if (known.type.ptr() == type) return known;
    }
  }
  KnownType found = find_way(object);
  KnownType dropped;  // destroyed after the mutex is released
  const nb::ft_lock_guard lock(last->mutex);
  if (last->kept.size() == kKept) {
    dropped = std::move(last->kept.front());
    last->kept.erase(last->kept.begin());
  }
  last->kept.push_back(found);
  return found;
}

// Returns true if PyTorch's `method` returns True for the object.
bool says(const nb::object& method, nb::handle object) {
  if (!method.is_valid()) return false;
  const nb::object answer =
      nb::steal(PyObject_CallFunctionObjArgs(method.ptr(), object.ptr(), nullptr));
  if (!answer.is_valid()) throw nb::python_error();
  return answer.is(nb::handle(Py_True));
}

// Throws for PyTorch's lazy views, whose elements are conjugated or negated only when they are
// read. Their memory holds other numbers, and DLPack does not tell.
void require_no_lazy_view(const KnownType& known,
                          const Array& array,
                          nb::handle object,
                          const char* name) {
  const bool is_complex = array.dtype == DType::kComplex64 || array.dtype == DType::kComplex128;
  const char* mend = nullptr;
  if (is_complex && says(known.is_conj, object)) mend = "conj";
  if (says(known.is_neg, object)) mend = "neg";
  if (mend == nullptr) return;
  refuse(name,
         std::string("is a view that is ") + (*mend == 'c' ? "conjugated" : "negated") +
             " when it is read, so its memory holds other numbers; " +
             by_way_of_copy(std::string(name) + ".resolve_" + mend + "()",
                            name,
                            std::string(name) + ".copy_(y)"));
}

Array from_dlpack(const KnownType& known, nb::handle object, const char* name) {
  Array array =
      known.api != nullptr ? from_exchange(*known.api, object, name) : from_method(object, name);
  require_no_lazy_view(known, array, object, name);
  return array;
}

Array read_by(const KnownType& known, nb::handle object, const char* name) {
  switch (known.way) {
    case Way::kExchange:
    case Way::kMethod:
      return from_dlpack(known, object, name);
    case Way::kCuPy:
      return from_cupy(object, name);
    case Way::kInterface:
      return from_interface(object, name);
    case Way::kBuffer:
      return from_buffer(object, name);
    case Way::kNumber:
      return read_number(object, name);
    case Way::kTracer:
      refuse(name,
             "is a tracer of JAX, which stands for an array while jit, grad or vmap look at a "
             "function, and has no memory; make the call outside of that function, or within it by "
             "jax.experimental.io_callback");
    case Way::kNone:
      break;
  }
  refuse(name,
         "is " + type_in_words(object) + ", not an array" +
             (PyList_Check(object.ptr()) == 0 && PyTuple_Check(object.ptr()) == 0
                  ? ""
                  : std::string("; hocket writes into arrays, so call with y = numpy.array(") +
                        name + "), in which a result comes"));
}

}  // namespace

Array read_foreign(nb::handle object, const char* name) {
  if (is_unfinished(object)) return read_unfinished(object);
  try {
    return read_by(way_of(object), object, name);
  } catch (const nb::python_error&) {
    if (!is_deleted(object)) throw;
    refuse(name,
           "is an array of JAX that has been deleted: its memory was given away (donate_argnums), "
           "or delete() was called; pass the one that took its place");
  } catch (const nb::cast_error&) {
    refuse(name,
           "is " + type_in_words(object) +
               ", which describes its memory in a way that hocket does not understand");
  }
}

}  // namespace hocket::python
