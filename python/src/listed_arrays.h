// Lists of arrays as one array, for v-forms in which each rank's part is a separate array.
#pragma once

#include "verbs.h"

namespace hocket::python {

// A value. `hull` reaches from the first byte of the arrays to the last, including gaps. It keeps
// all arrays alive, so that Python's list may change meanwhile.
struct ListedArrays {
  Array hull;
  Counts counts;  // of each, in elements
  Counts places;  // of each in the hull, in elements
};

// True if an argument is a list or a tuple, which no array is.
bool is_list(nb::handle object) noexcept;

// Reads every array by `read`. `name` is the argument's. Throws InvalidArgument if an entry is no
// array, is not in C order, lies in a GPU's memory, or differs in dtype.
ListedArrays read_list(nb::handle list, const char* name, Array (*read)(nb::handle, const char*));

// Throws InvalidArgument unless there are `ranks` arrays.
void require_one_each(const ListedArrays& listed, std::size_t ranks, const char* name);

}  // namespace hocket::python
