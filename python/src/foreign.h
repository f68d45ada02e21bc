// Arrays that are not NumPy's.
#pragma once

#include "array.h"

namespace hocket::python {

// Tried in the order of cost: DLPack's C exchange interface (a function pointer that the type
// offers), the buffer protocol, DLPack's Python method.
Array read_foreign(nb::handle object, const char* name);

}  // namespace hocket::python
