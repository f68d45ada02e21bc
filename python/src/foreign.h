// Arrays that are not NumPy's.
#pragma once

#include "array.h"

namespace hocket::python {

// Reads an array of another framework. Tries the cheapest interface first: DLPack's C exchange
// interface (a table of functions that the type offers), then the buffer protocol, then DLPack's
// Python method.
Array read_foreign(nb::handle object, const char* name);

}  // namespace hocket::python
