// Cached plans of earlier calls, so that a repeated call is planned once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "calls/call/request.h"
#include "foundation/base/hash.h"

namespace hocket::world {

// The plans of recent requests, of a few kinds and sizes. A repeated request is not checked again.
// A value, used in the communicator's turn.
template <typename AnyPlan>
class PlanCache {
 public:
  // Returns the plan of an equal request; null if there is none.
  AnyPlan* find(const call::Request& request) noexcept {
    Entry& kept = kept_[place_of(request)];
    return call::repeats(kept.request, request) ? &kept.plan : nullptr;
  }
  // Returns the plan that a request of this kind and size would replace. It may be the plan of the
  // same call on other arrays, whose engine can be used again.
  const AnyPlan& likely(const call::Request& request) const noexcept {
    return kept_[place_of(request)].plan;
  }
  void keep(const call::Request& request, AnyPlan plan) noexcept {
    Entry& kept = kept_[place_of(request)];
    kept.request = request;
    kept.plan = std::move(plan);
  }

 private:
  static constexpr std::size_t kEntries = 8;  // a power of two
  struct Entry {
    call::Request request;  // of kind kNone: the entry is empty
    AnyPlan plan;
  };
  // Returns a request's entry, by a single multiplication, because every call computes it.
  static std::size_t place_of(const call::Request& request) noexcept {
    const std::uint64_t size = request.out.count() * base::kHashSeed >> 32;
    return (size ^ static_cast<std::uint64_t>(request.kind)) % kEntries;
  }

  std::array<Entry, kEntries> kept_;
};

}  // namespace hocket::world
