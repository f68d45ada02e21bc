// NumPy arrays whose elements lie apart, as every second of an array, or a column: for messages
// they are packed into memory of their own, in C order, and what comes is unpacked.
#pragma once

#include "array.h"

namespace hocket::python {

// As read_array. An array that is not contiguous is copied; the copy is what is sent.
Array array_to_send(nb::handle object, const char* name);

// As writable_array. Instead of an array that is not contiguous something is received into that is,
// which `land` copies from. It begins as what is there, where what comes `may_be_shorter`.
Array array_to_receive(nb::handle object, const char* name, bool may_be_shorter);

// To be called once what was received is there. Nothing for other arrays.
void land(const Array& array);

}  // namespace hocket::python
