// NumPy arrays with strides, such as every second element, or a column. Messages pack them into
// contiguous memory, in C order, and unpack on receipt.
#pragma once

#include "array.h"

namespace hocket::python {

// As read_array. An array that is not contiguous is copied, and the copy is sent.
Array array_to_send(nb::handle object, const char* name);

// As writable_array. An array that is not contiguous is replaced by contiguous memory, from which
// `land` copies. If the message `may_be_shorter`, that memory starts with the array's content.
Array array_to_receive(nb::handle object, const char* name, bool may_be_shorter);

// Copies received data into the array; call it when the message has arrived. Does nothing for other
// arrays.
void land(const Array& array);

}  // namespace hocket::python
