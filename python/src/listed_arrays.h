// Lists of arrays as one: what the v-forms take where each rank's part is an array of its own.
#pragma once

#include "verbs.h"

namespace hocket::python {

// A value. `hull` reaches from the first byte of the arrays to the last, whatever lies between;
// it keeps all of them, so that Python's list may change meanwhile.
struct ListedArrays {
  Array hull;
  Counts counts;  // of each, in elements
  Counts places;  // of each in the hull, in elements
};

// Whether an argument is a list or a tuple, which no array is.
bool is_list(nb::handle object) noexcept;

// Reads every array by `read`. `name` is the argument's. Throws InvalidArgument where one is none,
// is not in C order, lies in a GPU's memory or is of another dtype than the others.
ListedArrays read_list(nb::handle list, const char* name, Array (*read)(nb::handle, const char*));

// Throws InvalidArgument unless there are `ranks` arrays.
void require_one_each(const ListedArrays& listed, std::size_t ranks, const char* name);

}  // namespace hocket::python
