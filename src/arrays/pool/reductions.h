// Reductions over a pool's workers. Arguments as in DevicePool, of which this is the inside.
#pragma once

#include "arrays/pool/moves.h"

namespace hocket::pool {

// In place where `in` and `out` are the same arrays.
void all_reduce(Pool& pool, In in, Out out, const PoolReduceOptions& options);
void reduce(Pool& pool, In in, ArrayView out, const PoolReduceOptions& options);

}  // namespace hocket::pool
