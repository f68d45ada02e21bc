// Support for frameworks whose arrays are immutable (JAX). A call writes its result into new
// memory. When the call ends, that memory becomes an array of the framework.
#pragma once

#include <optional>

#include "array.h"

namespace hocket::python {

bool is_immutable(nb::handle object);
// Returns true if the array's memory has been deleted.
bool is_deleted(nb::handle object);

// Returns memory for a result of the kind of `like`, an immutable array. In host memory it is a
// NumPy array, on a GPU an array of the framework. The call writes to it, then `finished` makes the
// result from it.
nb::object new_immutable(const Array& like, const Shape& shape);

// Returns memory for a result of the kind of `like`, a number.
nb::object new_number(nb::handle like);

// Returns true for memory that `new_immutable` or `new_number` has made.
bool is_unfinished(nb::handle object);
// Reads such memory as a writable array.
Array read_unfinished(nb::handle object);

// Returns the result of a call. Memory of `new_immutable` or `new_number` becomes an array or a
// number; any other `result` is returned as it is. The framework's later work on the array waits
// for `stream`, the stream of the call.
nb::object finished(nb::object result, std::optional<StreamRef> stream);

// Throws InvalidArgument if `result` is memory of `new_immutable` or `new_number`, made like the
// argument `name`. A call that is made repeatedly would need a new array each time.
void require_reusable(nb::handle result, const char* name = "x");

// Throws InvalidArgument, which says that the array is read-only.
[[noreturn]] void refuse_unwritable(nb::handle object, const char* name);

void bind_immutable(nb::module_& module);

}  // namespace hocket::python
