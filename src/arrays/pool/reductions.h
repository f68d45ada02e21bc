// Reductions over a pool's workers. The arguments are those of DevicePool.
#pragma once

#include "arrays/pool/moves.h"

namespace hocket::pool {

// Reduces all of `in` into each of `out`. In place if both are the same arrays.
void all_reduce(Pool& pool, In in, Out out, const PoolReduceOptions& options);
void reduce(Pool& pool, In in, ArrayView out, const PoolReduceOptions& options);

}  // namespace hocket::pool
