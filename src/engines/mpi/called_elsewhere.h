// Finds, from the records of other ranks, the call that they made with a number that this rank did
// not call by MPI.
#pragma once

#include <cstdint>

#include "engine/provider.h"
#include "engines/mpi/mpi_engine.h"

namespace hocket::engines::mpi {

// `given_up`: this rank called it by MPI, and MPI had not begun it. `site` is that of the group.
Elsewhere called_elsewhere(const engine::GroupSite& site, std::uint64_t sequence, bool given_up);

}  // namespace hocket::engines::mpi
