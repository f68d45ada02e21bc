// The ranks' agreement on a product that they are about to plan: all must describe the same
// product.
#pragma once

#include <cstdint>

#include "arrays/matmul/problem.h"
#include "hocket/communicator.h"

namespace hocket::matmul {

// Collective. Makes the problem, and returns the plan's token: rank 0's `mark`. `mark` differs from
// the marks of all other plans of this process. The token differs from the tokens of all other
// living plans. Throws InvalidArgument, the same on all ranks.
std::uint64_t agree(Communicator& comm,
                    const MatmulSize& size,
                    const MatmulOperand& a,
                    const MatmulOperand& b,
                    const MatmulOperand& d,
                    const MatmulOptions& options,
                    std::uint64_t mark,
                    std::optional<Problem>& problem);

}  // namespace hocket::matmul
