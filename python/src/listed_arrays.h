// Treats a list of arrays as one array, for v-forms in which each rank's part is a separate array.
#pragma once

#include "verbs.h"

namespace hocket::python {

// A value. `hull` is the memory from the first byte of the arrays to the last, including the gaps.
// It keeps all arrays alive, so Python's list may change during the call.
struct ListedArrays {
  Array hull;
  Counts counts;  // the length of each array, in elements
  Counts places;  // where each array begins in the hull, in elements
};

// Returns true if an argument is a list or a tuple. No array is a list or a tuple.
bool is_list(nb::handle object) noexcept;

// Reads every array of the list by `read`. `name` is the argument's. Throws InvalidArgument if an
// entry is no array, is not in C order, lies in a GPU's memory, or differs in dtype from the
// others.
ListedArrays read_list(nb::handle list, const char* name, Array (*read)(nb::handle, const char*));

// Throws InvalidArgument unless the list has one array for each of `ranks` ranks.
void require_one_each(const ListedArrays& listed, std::size_t ranks, const char* name);

}  // namespace hocket::python
