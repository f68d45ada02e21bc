// Keywords of the module's functions, beyond nanobind's own handling.
#pragma once

#include <nanobind/nanobind.h>

namespace hocket::python {

namespace nb = nanobind;

// Improves keywords of every function and method of the module. nanobind's error lists the keywords
// that a function takes; afterwards it names the wrong one. `timeout` and `deadline` are accepted
// for each other if the function takes one of them. Arguments that do not fit a collective call are
// refused on all its ranks. Call it once, when all functions are defined.
void mind_keywords(nb::module_& module);

}  // namespace hocket::python
