// Messages among a subset of a group's ranks.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/point_to_point.h"

namespace hocket::algorithm {

// The carrier of a whole group, restricted to some of its ranks; see engine::PointToPoint. Rank i
// of the subset is rank members[i] of the group. The carrier must outlive the subset. A resource.
class Subset final : public engine::PointToPoint {
 public:
  Subset(engine::PointToPoint& whole, std::vector<int> members)
      : whole_(whole), members_(std::move(members)) {}

  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override {
    return whole_.send(outside(to), bytes);
  }
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override {
    return whole_.recv(outside(from), bytes);
  }
  std::optional<engine::MessageId> recv_to(const engine::Envelope& from,
                                           std::size_t bytes,
                                           engine::Taker& taker) override {
    return whole_.recv_to(outside(from), bytes, taker);
  }
  bool test(engine::MessageId message, engine::Envelope* received) override {
    if (!whole_.test(message, received)) return false;
    if (received != nullptr) {
      const auto found = std::find(members_.begin(), members_.end(), received->peer);
      received->peer = static_cast<int>(found - members_.begin());
    }
    return true;
  }
  bool progress() override { return whole_.progress(); }
  void cancel(engine::MessageId message) noexcept override { whole_.cancel(message); }

 private:
  engine::Envelope outside(engine::Envelope envelope) const noexcept {
    envelope.peer = members_[static_cast<std::size_t>(envelope.peer)];
    return envelope;
  }

  engine::PointToPoint& whole_;
  std::vector<int> members_;
};

}  // namespace hocket::algorithm
