// Movement between a pool's workers. The arguments are those of DevicePool.
#pragma once

#include "arrays/pool/pool.h"

namespace hocket::pool {

using In = std::span<const ConstArrayView>;
using Out = std::span<const ArrayView>;
using Streams = std::span<const StreamRef>;

void distribute(Pool& pool, In in, std::span<const int> from, Out out, Streams streams);
void scatter(Pool& pool, ConstArrayView in, Out out, Streams streams);
void gather(Pool& pool, In in, ArrayView out, Streams streams);
void all_gather(Pool& pool, In in, Out out, Streams streams);

// Copies in the worker's thread, or on its stream.
void copy(const WorkerState& state, ArrayView to, ConstArrayView from);

}  // namespace hocket::pool
