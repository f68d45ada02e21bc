#include "calls/call/membership.h"

#include <fmt/format.h>

#include "foundation/base/hash.h"
#include "hocket/error.h"

namespace hocket::call {

// Groups made by one call have the same name and different first members.
std::uint64_t Membership::id() const noexcept {
  const std::uint64_t hash = base::hash_of(name, static_cast<std::uint64_t>(world_ranks[0]));
  return base::mix(hash, 0) | 1;  // never 0
}

engine::GroupFacts facts_of(const Membership& membership) {
  return {.rank = membership.rank,
          .size = membership.size(),
          .hosts = membership.hosts,
          .one_host = !membership.spans()};
}

void require_rank(const char* name, int rank, int size) {
  if (rank >= 0 && rank < size) return;
  throw InvalidArgument(
      fmt::format("{} is {}, expected a rank from 0 to {}", name, rank, size - 1));
}

}  // namespace hocket::call
