#include "arrays/pool/checks.h"

#include <fmt/format.h>

#include <functional>

#include "calls/call/request.h"

namespace hocket::pool {
namespace {

bool overlap(ConstArrayView a, ConstArrayView b) {
  const auto* first = static_cast<const std::byte*>(a.data());
  const auto* second = static_cast<const std::byte*>(b.data());
  return a.count() > 0 && b.count() > 0 && std::less<>()(first, second + b.bytes()) &&
         std::less<>()(second, first + a.bytes());
}

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
  call::require_array(array, name);
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

void require_apart(std::span<const ArrayView> arrays, std::string_view name) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!overlap(arrays[i], arrays[j])) continue;
      throw InvalidArgument(fmt::format(
          "{0}[{1}] and {0}[{2}] share memory; each worker's array must be its own", name, j, i));
    }
  }
}

void require_apart(ConstArrayView written,
                   std::string_view written_name,
                   ConstArrayView read,
                   std::string_view read_name) {
  const bool same = written.data() == read.data() && written.bytes() == read.bytes();
  if (same || !overlap(written, read)) return;
  throw InvalidArgument(fmt::format(
      "{} shares memory with {}, which others read meanwhile", written_name, read_name));
}

void require_op(ReduceOp op, DType dtype) {
  if (is_defined(op, dtype)) return;
  throw InvalidArgument(fmt::format("op {} has no meaning on {}", name_of(op), name_of(dtype)));
}

}  // namespace hocket::pool
