// Keywords of the module's functions, beyond nanobind's own handling.
#pragma once

#include <nanobind/nanobind.h>

namespace hocket::python {

namespace nb = nanobind;

// Improves how every function and method of the module handles keywords. nanobind's error lists the
// keywords that a function takes; with this, it also names the wrong keyword. `timeout` and
// `deadline` are accepted for each other if the function takes only one of them. If the arguments
// of a collective call do not fit its signature, all its ranks are told. Call it once, when all
// functions are defined.
void mind_keywords(nb::module_& module);

}  // namespace hocket::python
