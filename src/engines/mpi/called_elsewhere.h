// Finds the MPI call that the other ranks made under a number for which this rank made no MPI call.
// The information is in the records of the other ranks.
#pragma once

#include <cstdint>

#include "engine/provider.h"
#include "engines/mpi/mpi_engine.h"

namespace hocket::engines::mpi {

// `given_up` says that this rank's engine started the call, but ended it before MPI had begun it.
// `site` is the site of the group.
Elsewhere called_elsewhere(const engine::GroupSite& site, std::uint64_t sequence, bool given_up);

}  // namespace hocket::engines::mpi
