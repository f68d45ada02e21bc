// Python's bootstraps as C++'s.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "hocket/bootstrap.h"

namespace hocket::python {

namespace nb = nanobind;

// The bootstrap that `init` was given: `bootstrap`, a hocket.Bootstrap, or one made of `mpi`, a
// communicator of mpi4py. Null where both are None. It is used without the GIL, which it takes.
std::unique_ptr<Bootstrap> bootstrap_argument(nb::handle bootstrap, nb::handle mpi);

}  // namespace hocket::python
