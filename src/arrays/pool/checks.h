// Checks of the lists of arrays in a pool's calls. All throw InvalidArgument that names the
// argument and the worker.
#pragma once

#include <span>
#include <string_view>

#include "arrays/pool/pool.h"
#include "hocket/array_view.h"

namespace hocket::pool {

// Requires one array for each worker, in the worker's memory.
void require_one_each(const Pool& pool, std::span<const ArrayView> arrays, std::string_view name);
void require_one_each(const Pool& pool,
                      std::span<const ConstArrayView> arrays,
                      std::string_view name);
// Requires memory that the pool's workers reach: host memory or, for a pool of GPUs, any GPU's.
void require_reachable(const Pool& pool, ConstArrayView array, std::string_view name);
void require_equal(ConstArrayView array, ConstArrayView like, std::string_view name);
void require_dtype(ConstArrayView array, ConstArrayView like, std::string_view name);
// Requires that no two arrays share memory.
void require_apart(std::span<const ArrayView> arrays, std::string_view name);
// Requires that a written array shares no memory with an array that other workers read. The same
// array is allowed: a call leaves it as it is, or works in place.
void require_apart(ConstArrayView written,
                   std::string_view written_name,
                   ConstArrayView read,
                   std::string_view read_name);
void require_op(ReduceOp op, DType dtype);

std::vector<ConstArrayView> as_const(std::span<const ArrayView> arrays);

}  // namespace hocket::pool
