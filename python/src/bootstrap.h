// Adapts Python's bootstraps to C++'s.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "hocket/bootstrap.h"

namespace hocket::python {

namespace nb = nanobind;

// The bootstrap that `init` was given: `bootstrap`, a hocket.Bootstrap, or one made of `mpi`, a
// communicator of mpi4py. Null if both are None. Its methods run without the GIL, and take it.
std::unique_ptr<Bootstrap> bootstrap_argument(nb::handle bootstrap, nb::handle mpi);

// Tells the processes of `group`, which may be null, that this one's arguments are refused. They
// make its calls, and would wait there. Throws only exceptions of signal handlers.
void refuse_joining(Bootstrap* group);

// Runs `read`, which reads the arguments of a call that joins by `group`. Tells the group if it
// throws.
template <typename Read>
auto read_joining(Bootstrap* group, Read&& read) {
  try {
    return read();
  } catch (...) {
    refuse_joining(group);
    throw;
  }
}

}  // namespace hocket::python
