// Adapts bootstraps that are Python objects to the C++ interface `hocket::Bootstrap`.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "hocket/bootstrap.h"

namespace hocket::python {

namespace nb = nanobind;

// Returns the bootstrap for `init`. It uses `bootstrap`, a hocket.Bootstrap, or `mpi`, an mpi4py
// communicator. Returns null if both are None. Call the bootstrap's methods without the GIL,
// because they acquire it.
std::unique_ptr<Bootstrap> bootstrap_argument(nb::handle bootstrap, nb::handle mpi);

// Tells the other processes of `group` that this process has refused its arguments. Otherwise they
// would wait for this process. Does nothing if `group` is null. Throws only exceptions of signal
// handlers.
void refuse_joining(Bootstrap* group);

// Runs `read`, which reads the arguments of a call that joins a job by `group`. If `read` throws,
// the other processes of `group` are told.
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
