// What the lists of arrays of a pool's calls must be. All throw InvalidArgument, which names the
// argument and the worker.
#pragma once

#include <span>
#include <string_view>

#include "arrays/pool/pool.h"
#include "hocket/array_view.h"

namespace hocket::pool {

// One array a worker, each in its worker's memory.
void require_one_each(const Pool& pool, std::span<const ArrayView> arrays, std::string_view name);
void require_one_each(const Pool& pool,
                      std::span<const ConstArrayView> arrays,
                      std::string_view name);
// Memory that the pool's workers reach: of the host, or of any GPU where they are GPUs.
void require_reachable(const Pool& pool, ConstArrayView array, std::string_view name);
void require_equal(ConstArrayView array, ConstArrayView like, std::string_view name);
void require_dtype(ConstArrayView array, ConstArrayView like, std::string_view name);
// No two of them share memory.
void require_apart(std::span<const ArrayView> arrays, std::string_view name);
// An array that is written shares no memory with one that others read, unless it is the same one,
// which then stays as it is.
void require_apart(ConstArrayView written,
                   std::string_view written_name,
                   ConstArrayView read,
                   std::string_view read_name);
void require_op(ReduceOp op, DType dtype);

std::vector<ConstArrayView> as_const(std::span<const ArrayView> arrays);

}  // namespace hocket::pool
