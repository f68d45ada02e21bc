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

// Has the processes of `group`, which may be null, hear that this one's arguments are refused: they
// come to its calls, and would wait there. Throws only what a signal's handler raises meanwhile.
void refuse_joining(Bootstrap* group);

// What `read` reads of the arguments of a call that joins by `group`.
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
