// hocket's errors as Python exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <vector>

#include "hocket/error.h"

namespace hocket::python {

namespace nb = nanobind;

// Makes nanobind translate C++ errors to the classes of hocket/errors.py. Call it once.
void bind_errors();

// Returns an error as a Python exception object.
nb::object to_exception(const std::exception_ptr& error);
nb::list to_list(const std::vector<RankCall>& calls);
nb::object to_python(const Status& status);

}  // namespace hocket::python
