#include "pool/checks.h"

#include <fmt/format.h>

namespace hocket::pool {
namespace {

std::string describe(ConstArrayView array) {
  return fmt::format("{}[{}]", name_of(array.dtype()), array.count());
}

}  // namespace

std::vector<ConstArrayView> as_const(std::span<const ArrayView> arrays) {
  return {arrays.begin(), arrays.end()};
}

void require_one_each(const Pool& pool, std::span<const ArrayView> arrays, std::string_view name) {
  require_one_each(pool, as_const(arrays), name);
}

void require_one_each(const Pool& pool,
                      std::span<const ConstArrayView> arrays,
                      std::string_view name) {
  if (arrays.size() != static_cast<std::size_t>(pool.size())) {
    throw InvalidArgument(fmt::format("{} has {} arrays for {} workers; one for each is expected",
                                      name,
                                      arrays.size(),
                                      pool.size()));
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const ConstArrayView& array = arrays[i];
    require_reachable(pool, array, fmt::format("{}[{}]", name, i));
    if (!pool.has_gpus() || array.count() == 0) continue;
    const int device = pool.devices()[i];
    const int found = pool.device_of(array);
    if (found == device) continue;
    throw InvalidArgument(
        fmt::format("{}[{}] lies {}, expected on its worker's GPU {}",
                    name,
                    i,
                    found == kAnyDevice ? "in host memory" : fmt::format("on GPU {}", found),
                    device));
  }
}

void require_reachable(const Pool& pool, ConstArrayView array, std::string_view name) {
  if (array.memory() == MemoryKind::kHost || pool.has_gpus()) return;
  throw InvalidArgument(fmt::format(
      "{} lies in a GPU's memory, and the pool's workers are of the host; make the pool "
      "with devices",
      name));
}

void require_dtype(ConstArrayView array, ConstArrayView like, std::string_view name) {
  if (array.dtype() == like.dtype()) return;
  throw InvalidArgument(fmt::format(
      "{} is {}, expected {} as the first", name, name_of(array.dtype()), name_of(like.dtype())));
}

void require_equal(ConstArrayView array, ConstArrayView like, std::string_view name) {
  if (array.dtype() == like.dtype() && array.count() == like.count()) return;
  throw InvalidArgument(
      fmt::format("{} is {}, expected {} as the first", name, describe(array), describe(like)));
}

void require_op(ReduceOp op, DType dtype) {
  if (is_defined(op, dtype)) return;
  throw InvalidArgument(fmt::format("op {} has no meaning on {}", name_of(op), name_of(dtype)));
}

}  // namespace hocket::pool
