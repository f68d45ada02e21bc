#include "call/membership.h"

#include "base/hash.h"

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

}  // namespace hocket::call
