// Frameworks whose arrays never change (JAX): what a call would write goes into memory of its own,
// which becomes an array of the framework at the end.
#pragma once

#include <optional>

#include "array.h"

namespace hocket::python {

bool is_immutable(nb::handle object);
// Whether it is one of those whose memory is gone.
bool is_deleted(nb::handle object);

// Memory for a result of the kind of `like`, an array that never changes: in the host's memory
// NumPy's, in a GPU's the framework's own. To be written to, and then `finished`.
nb::object new_immutable(const Array& like, const Shape& shape);

// Memory for a result of the kind of `like`, a number.
nb::object new_number(nb::handle like);

// Whether it is of these two; its memory.
bool is_unfinished(nb::handle object);
Array read_unfinished(nb::handle object);

// A call hands back this: `result` itself, or the array or number made of such memory. `stream`:
// where the call is, which the framework's own work on the array will come after.
nb::object finished(nb::object result, std::optional<StreamRef> stream);

// Throws InvalidArgument where a call that is made again and again would have to make a new array
// each time.
void require_reusable(nb::handle result);

// Throws InvalidArgument for an array that can only be read.
[[noreturn]] void refuse_unwritable(nb::handle object, const char* name);

void bind_immutable(nb::module_& module);

}  // namespace hocket::python
