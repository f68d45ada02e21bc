// Replaces core's inner loops: the same work, one byte or number at a time. The simulator sees
// every read and write.
#include <cstddef>
#include <cstdint>
#include <source_location>

#include "foundation/base/atomic.h"
#include "foundation/core/claim.h"
#include "foundation/core/reduce.h"

namespace hocket::core {
namespace {

// Sums of int64 are all that the programs here ask for.
void add_int64(void* const* outs,
               int n_outs,
               const void* const* sources,
               int n_sources,
               std::size_t count,
               int) {
  const std::size_t bytes = count * sizeof(std::int64_t);
  const auto here = std::source_location::current();
  for (int s = 0; s < n_sources; ++s) relacy::read_bytes(sources[s], bytes, here);
  for (int o = 0; o < n_outs; ++o) relacy::write_bytes(outs[o], bytes, here);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t sum = 0;
    for (int s = 0; s < n_sources; ++s) sum += static_cast<const std::int64_t*>(sources[s])[i];
    for (int o = 0; o < n_outs; ++o) static_cast<std::int64_t*>(outs[o])[i] = sum;
  }
}

}  // namespace

ReduceKernel reduce_kernel(DType, ReduceOp, Stores) { return add_int64; }
void copy(void* out, const void* in, std::size_t bytes, Stores) {
  base::copy_plain(out, in, bytes);
}
bool can_claim() noexcept { return true; }
bool copies_by_itself() noexcept { return false; }
void claim(const void*, std::size_t) noexcept {}
void copy_claimed(void* out, const void* in, std::size_t bytes) noexcept {
  base::copy_plain(out, in, bytes);
}

}  // namespace hocket::core
