// What the ranks say of a plan they are about to make, and whether it fits together.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "arrays/fft/lay.h"
#include "arrays/fft/route.h"
#include "hocket/communicator.h"

namespace hocket::fft {

// What all ranks agreed on. A value.
struct Agreed {
  Wanted wanted;
  std::vector<Box> from, to;  // by rank
  std::uint64_t token = 0;    // of this plan, unlike that of any other that lives
};

// Collective. `mark` is unlike that of any other plan of this process. Throws InvalidArgument, the
// same on all ranks.
Agreed agree(Communicator& comm,
             const Extents& shape,
             const Box& from,
             const Box& to,
             const FftOptions& options,
             std::uint64_t mark);

}  // namespace hocket::fft
