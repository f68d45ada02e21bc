// MPI's operators on packed elements of one kind, for kinds and operators that hocket's reductions
// do not have.
#pragma once

#include <cstddef>
#include <string_view>

#include "interfaces/mpi/types/kinds.h"

namespace hocket::mpi {

// Computes right = left op right. `op` is the name of an operator that is defined on the kind.
// Returns false if numbers of this kind cannot be computed here.
bool combine_elements(std::string_view op,
                      const KindFacts& kind,
                      const std::byte* left,
                      std::byte* right,
                      std::int64_t count);

}  // namespace hocket::mpi
