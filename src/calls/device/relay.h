// Messages between GPUs through the host. They are used if no engine for GPUs carries messages, or
// none is known yet, because that takes a collective call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "calls/device/staging.h"
#include "hocket/communicator.h"

namespace hocket::call {
class Core;
}

namespace hocket::device {

// A resource, one for each communicator; the communicator's turn guards it. Both ends of a message
// must use the same way. If one end used the host before there was an engine, the other end also
// uses the host.
class DeviceRelay {
 public:
  explicit DeviceRelay(call::Core& owner);

  // The number of messages with one rank that used the host. A value of fixed size, which ranks
  // exchange.
  struct Tally {
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
  };
  // Returns the tallies, by rank. `any` tells whether one is not zero.
  const std::vector<Tally>& tallies() const noexcept { return tallies_; }
  bool any() const noexcept { return last_ != 0; }
  // Returns whether all messages that it began have ended.
  bool is_idle() const noexcept { return begun_.use_count() == 1; }
  // Called when there is an engine. `theirs` has each rank's count of its messages with this rank.
  void settle(std::span<const Tally> theirs);

  // Return how many of the next messages to and from a rank use the host although there is an
  // engine.
  std::int64_t owed_to(int rank) const noexcept {
    return owed_[static_cast<std::size_t>(rank)].sent;
  }
  std::int64_t owed_by(int rank) const noexcept {
    return owed_[static_cast<std::size_t>(rank)].received;
  }

  // Returns whether a stream waits for messages that have not ended.
  bool holds_streams() noexcept;

  // Makes the host carry messages that are on a stream. Arrays that are sent are copied before any
  // message arrives. A failure ends the communicator.
  void exchange(const std::shared_ptr<StagedExchange>& staged,
                std::span<const Outgoing> outgoing,
                std::span<const Incoming> incoming,
                Duration allowed);

 private:
  void start(const std::shared_ptr<StagedExchange>& staged,
             int peer,
             ConstArrayView array,
             std::byte* copy,
             bool sends,
             Duration allowed);

  call::Core& owner_;
  std::vector<Tally> tallies_;
  std::vector<Tally> owed_;
  std::vector<std::weak_ptr<StagedExchange>> awaited_;  // that streams wait for
  // Messages begin in the order of their calls. Each message shares ownership of its counter.
  std::uint64_t last_ = 0;
  std::shared_ptr<std::uint64_t> begun_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace hocket::device
