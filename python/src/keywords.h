// Keywords of the bound functions, beyond what nanobind makes of them.
#pragma once

#include <nanobind/nanobind.h>

namespace hocket::python {

namespace nb = nanobind;

// Has every function and method of the module name a keyword that it does not take, where nanobind
// lists what it takes; and take `timeout` and `deadline` for each other, where it has one of them.
// Arguments that do not fit a collective call at all are refused for all of its ranks.
// To be called once, when all are defined.
void mind_keywords(nb::module_& module);

}  // namespace hocket::python
