// Cached plans of earlier calls, so that a repeated call is planned once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "calls/call/request.h"
#include "foundation/base/hash.h"

namespace hocket::world {

// A value: the plans of the last requests, of a few kinds and sizes. A repeated request needs no
// new checks. Used in the communicator's turn.
template <typename AnyPlan>
class PlanCache {
 public:
  // The plan of the last request like this; null if this request differs.
  AnyPlan* find(const call::Request& request) noexcept {
    Entry& kept = kept_[place_of(request)];
    return call::repeats(kept.request, request) ? &kept.plan : nullptr;
  }
  // The plan of an earlier request, perhaps of this kind and size with other arrays.
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
    call::Request request;  // none has kNone
    AnyPlan plan;
  };
  // A single multiplication, as every call computes it.
  static std::size_t place_of(const call::Request& request) noexcept {
    const std::uint64_t size = request.out.count() * base::kHashSeed >> 32;
    return (size ^ static_cast<std::uint64_t>(request.kind)) % kEntries;
  }

  std::array<Entry, kEntries> kept_;
};

}  // namespace hocket::world
