// What the ranks say of a product they are about to plan, and whether all say the same.
#pragma once

#include <cstdint>

#include "arrays/matmul/problem.h"
#include "hocket/communicator.h"

namespace hocket::matmul {

// Collective. `mark` is unlike that of any other plan of this process. Returns the plan's token,
// unlike that of any other that lives, and makes the problem. Throws InvalidArgument, the same on
// all ranks.
std::uint64_t agree(Communicator& comm,
                    const MatmulSize& size,
                    const MatmulOperand& a,
                    const MatmulOperand& b,
                    const MatmulOperand& d,
                    const MatmulOptions& options,
                    std::uint64_t mark,
                    std::optional<Problem>& problem);

}  // namespace hocket::matmul
