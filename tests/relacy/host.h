// A host's memory and a group in it, for programs whose threads are its ranks.
#pragma once

#include <memory>
#include <numeric>
#include <vector>

#include "foundation/os/segment.h"
#include "membership/control/group.h"
#include "membership/control/host/host.h"
#include "system.h"

namespace hocket::relacy {

// The books of each rank, and the block that they share.
class Host {
 public:
  explicit Host(int ranks, bool heavy_fence = true) : places_(static_cast<std::size_t>(ranks)) {
    has_heavy_fence = heavy_fence;
    std::iota(places_.begin(), places_.end(), 0);
    const control::HostShape shape{.ranks = ranks, .stripe_bytes = 1 << 16};
    segment_ = std::make_shared<os::Segment>(
        os::Segment::create_private(control::HostControl::segment_bytes(shape)));
    control::HostControl::format(*segment_, shape);
    block_ = std::make_unique<std::byte[]>(control::GroupControl::bytes(ranks) + kApart);
    control::GroupControl::format(block(), places_);
    for (int rank = 0; rank < ranks; ++rank) {
      hosts_.push_back(std::make_unique<control::HostControl>(segment_, rank));
      groups_.push_back(
          std::make_unique<control::GroupControl>(*hosts_.back(), block(), rank, places_));
    }
  }

  control::HostControl& host(int rank) { return *hosts_[static_cast<std::size_t>(rank)]; }
  control::GroupControl& group(int rank) { return *groups_[static_cast<std::size_t>(rank)]; }

 private:
  static constexpr std::size_t kApart = control::kApart;
  std::byte* block() const {
    const auto at = reinterpret_cast<std::uintptr_t>(block_.get());
    return block_.get() + (kApart - at % kApart) % kApart;
  }

  std::vector<int> places_;
  std::shared_ptr<os::Segment> segment_;
  std::unique_ptr<std::byte[]> block_;
  std::vector<std::unique_ptr<control::HostControl>> hosts_;
  std::vector<std::unique_ptr<control::GroupControl>> groups_;
};

}  // namespace hocket::relacy
