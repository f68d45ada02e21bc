// A carrier of messages made of two: one for ranks of this host, the other for all other ranks.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "engine/point_to_point.h"

namespace hocket::world {

// See engine::PointToPoint. A resource that owns both carriers. `near` has rank numbers of its own;
// `far` uses the group's.
class RoutedMessages final : public engine::PointToPoint {
 public:
  // `near_ranks`: by member, its rank in `near`, or -1 if it is on another host.
  RoutedMessages(std::unique_ptr<engine::PointToPoint> near,
                 std::vector<int> near_ranks,
                 std::unique_ptr<engine::PointToPoint> far);

  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override;
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override;
  std::optional<engine::MessageId> recv_to(const engine::Envelope& from,
                                           std::size_t bytes,
                                           engine::Taker& taker) override;
  bool test(engine::MessageId message, engine::Envelope* received) override;
  bool progress() override;
  std::optional<std::uint64_t> owed(int peer) override;
  void cancel(engine::MessageId message) noexcept override;
  bool withdraw(engine::MessageId message) noexcept override;
  std::optional<engine::Envelope> waiting(const engine::Envelope& wanted) override;

 private:
  enum class Way : std::uint8_t { kNone, kNear, kFar, kHeld };
  struct Slot {
    Way way = Way::kNone;
    engine::MessageId inner{};
    engine::Envelope from;  // of a held receive
    std::span<std::byte> bytes;
  };

  engine::MessageId take_slot();
  Slot& slot(engine::MessageId id) { return slots_[static_cast<std::size_t>(id)]; }
  engine::PointToPoint& carrier(Way way) { return way == Way::kNear ? *near_ : *far_; }
  Way way_to(int peer) const;
  engine::Envelope inward(const engine::Envelope& envelope, Way way) const;
  engine::Envelope outward(const engine::Envelope& envelope, Way way) const;
  bool has_to_wait(const engine::Envelope& from);
  void give_back(engine::MessageId id) noexcept;
  void post(Slot& slot, int peer, engine::Tag tag);
  bool post_held();
  std::optional<engine::Envelope> arrived(const engine::Envelope& wanted);

  std::unique_ptr<engine::PointToPoint> near_;
  std::unique_ptr<engine::PointToPoint> far_;
  const std::vector<int> near_ranks_;
  std::vector<int> members_;       // the member of each rank of `near`
  std::size_t near_messages_ = 0;  // number of near messages in progress
  // True once a near message was sent, even if the send ended at once, because probes must look for
  // it.
  bool sent_near_ = false;
  std::deque<Slot> slots_;
  std::vector<engine::MessageId> free_;
  // Receives from any rank for which no message has come to either carrier, and later receives that
  // must not overtake them. In the order of their calls.
  std::vector<engine::MessageId> held_;
};

}  // namespace hocket::world
