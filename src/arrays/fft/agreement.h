// The ranks' agreement on a plan that they are about to make: their descriptions must fit together.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "arrays/fft/lay.h"
#include "arrays/fft/route.h"
#include "hocket/communicator.h"

namespace hocket::fft {

// The plan that all ranks agreed on. A value.
struct Agreed {
  Wanted wanted;
  std::vector<Box> from, to;  // by rank
  std::uint64_t token = 0;    // of this plan; differs from the tokens of all other living plans
};

// Collective. `mark` differs from the marks of all other plans of this process. Throws
// InvalidArgument, the same on all ranks.
Agreed agree(Communicator& comm,
             const Extents& shape,
             const Box& from,
             const Box& to,
             const FftOptions& options,
             std::uint64_t mark);

}  // namespace hocket::fft
