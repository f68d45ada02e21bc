// Frameworks whose arrays never change (JAX). A call writes into new memory, which becomes an array
// of the framework at the end.
#pragma once

#include <optional>

#include "array.h"

namespace hocket::python {

bool is_immutable(nb::handle object);
// True if the array's memory has been deleted.
bool is_deleted(nb::handle object);

// Memory for a result of the kind of `like`, an array that never changes. In host memory it is
// NumPy's, on a GPU the framework's own. The call writes to it, and then it is `finished`.
nb::object new_immutable(const Array& like, const Shape& shape);

// Memory for a result of the kind of `like`, a number.
nb::object new_number(nb::handle like);

// True for memory of these two functions; the second reads it as an array.
bool is_unfinished(nb::handle object);
Array read_unfinished(nb::handle object);

// The result that a call returns: `result` itself, or the array or number made of such memory. The
// framework's own work on the array comes after `stream`, the call's.
nb::object finished(nb::object result, std::optional<StreamRef> stream);

// Throws InvalidArgument if a call that is made repeatedly would have to make a new array each
// time.
void require_reusable(nb::handle result);

// Throws InvalidArgument for an array that can only be read.
[[noreturn]] void refuse_unwritable(nb::handle object, const char* name);

void bind_immutable(nb::module_& module);

}  // namespace hocket::python
