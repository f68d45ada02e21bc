// Messages between GPUs through the host. They are used if no engine for GPUs carries messages, or
// before the first collective call has made the engines.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "calls/device/streams/staging.h"
#include "hocket/communicator.h"

namespace hocket::call {
class Core;
}

namespace hocket::device {

// A resource, one for each communicator; the communicator's turn guards it. Both ends of a message
// must agree whether it goes through the host. If one end used the host before there was an engine,
// the other end must use it, too.
class DeviceRelay {
 public:
  explicit DeviceRelay(call::Core& owner);

  // The number of messages with one rank that used the host. A value of fixed size, which ranks
  // exchange.
  struct MessageCounts {
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
  };
  // Returns the counts, by rank. `any` tells whether the host has carried any message.
  const std::vector<MessageCounts>& counts() const noexcept { return counts_; }
  bool any() const noexcept { return last_ != 0; }
  // Returns whether all messages that it began have ended.
  bool is_idle() const noexcept { return begun_.use_count() == 1; }
  // Called when there is an engine. `theirs` has each rank's count of its messages with this rank.
  void count_owed(std::span<const MessageCounts> theirs);

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

  // Makes the host carry messages on the copies in `staged`. The stream copies sent arrays before
  // any message arrives. A failure ends the communicator.
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
  std::vector<MessageCounts> counts_;
  std::vector<MessageCounts> owed_;
  std::vector<std::weak_ptr<StagedExchange>> awaited_;  // exchanges that streams wait for
  // Messages begin in the order of their numbers: `last_` is the newest number, and `begun_` the
  // last that has begun. Each message in progress shares ownership of `begun_`.
  std::uint64_t last_ = 0;
  std::shared_ptr<std::uint64_t> begun_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace hocket::device
