#include "foreign.h"

#include <string>
#include <string_view>
#include <vector>

#include "foreign_parts.h"

namespace hocket::python {
namespace {

bool is_of_cupy(nb::handle object) {
  const nb::object module = object.type().attr("__module__");
  return nb::isinstance<nb::str>(module) &&
         std::string_view(nb::cast<nb::str>(module).c_str()).starts_with("cupy");
}

enum class Way : std::uint8_t { kExchange, kCuPy, kInterface, kMethod, kBuffer, kNone };

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
  } else if (is_cupy_array(object)) {
    known.way = Way::kCuPy;
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

namespace {

Array read_by(const Known& known, nb::handle object, const char* name) {
  switch (known.way) {
    case Way::kExchange:
      return from_exchange(*known.api, object, name);
    case Way::kCuPy:
      return from_cupy(object, name);
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

}  // namespace

Array read_foreign(nb::handle object, const char* name) {
  if (is_unfinished(object)) return read_unfinished(object);
  try {
    return read_by(way_of(object), object, name);
  } catch (const nb::cast_error&) {
    refuse(name,
           std::string("is a ") + Py_TYPE(object.ptr())->tp_name +
               ", which describes its memory in a way that hocket does not understand");
  }
}

}  // namespace hocket::python
