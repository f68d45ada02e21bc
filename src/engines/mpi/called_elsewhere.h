// What the others did under a number that this rank has not called by MPI, from their records.
#pragma once

#include <cstdint>

#include "engine/provider.h"
#include "engines/mpi/mpi_engine.h"

namespace hocket::engines::mpi {

// `given_up`: this rank has called it by MPI, which had not begun it. `site`: of the group.
Elsewhere called_elsewhere(const engine::GroupSite& site, std::uint64_t sequence, bool given_up);

}  // namespace hocket::engines::mpi
