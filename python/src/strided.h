// NumPy arrays with strides, such as every second element, or a column. A message packs such an
// array into contiguous memory in C order. The receiver copies the data back into its strided
// array.
#pragma once

#include "array.h"

namespace hocket::python {

// Does the same as read_array, but accepts an array that is not contiguous: the call sends a copy.
Array array_to_send(nb::handle object, const char* name);

// Does the same as writable_array, but accepts an array that is not contiguous: the call receives
// into new memory, and `copy_back` copies from there. If the message `may_be_shorter` than the
// array, the new memory starts with the array's content.
Array array_to_receive(nb::handle object, const char* name, bool may_be_shorter);

// Copies received data into the strided array. Call it when the message has arrived. Does nothing
// for contiguous arrays.
void copy_back(const Array& array);

}  // namespace hocket::python
