// Operators of MPI on packed elements of one kind, which hocket's own reductions do not have.
#pragma once

#include <cstddef>
#include <string_view>

#include "interfaces/mpi/types/kinds.h"

namespace hocket::mpi {

// right = left op right. `op` is the name of an operator that has a meaning on the kind. Returns
// false if this kind of numbers cannot be computed here.
bool combine_elements(std::string_view op,
                      const KindFacts& kind,
                      const std::byte* left,
                      std::byte* right,
                      std::int64_t count);

}  // namespace hocket::mpi
