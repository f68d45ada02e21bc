// hocket's errors as Python exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <vector>

#include "hocket/error.h"

namespace hocket::python {

namespace nb = nanobind;

// Makes C++ errors arrive as the classes of hocket/errors.py, and Ctrl-C end a wait.
void bind_errors();

// The Python exception of an error, as an object.
nb::object to_exception(const std::exception_ptr& error);
nb::list to_list(const std::vector<RankCall>& calls);
nb::object to_python(const Status& status);

}  // namespace hocket::python
