// Halo exchange between a pool's workers. The arguments are those of DevicePool.
#pragma once

#include "arrays/pool/moves.h"

namespace hocket::pool {

void exchange_halo(Pool& pool,
                   Out arrays,
                   const HaloShape& shape,
                   std::span<const std::size_t> seams,
                   std::size_t overlap,
                   const HaloOptions& options);

}  // namespace hocket::pool
