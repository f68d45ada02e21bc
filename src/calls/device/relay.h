// Messages between GPUs by way of the host: where no engine of GPUs carries them, or none has been
// found so far, as that takes a call that all ranks make.
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

// A resource, one a communicator; guarded by the communicator's turn. Both ends of a message have
// to go by the same way: those that one end took to the host before there was an engine, the other
// end takes there too.
class DeviceRelay {
 public:
  explicit DeviceRelay(call::Core& owner);

  // Messages with one rank that went by the host. A value of fixed size, as it travels.
  struct Tally {
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
  };
  // By rank. There are some: `any`.
  const std::vector<Tally>& tallies() const noexcept { return tallies_; }
  bool any() const noexcept { return last_ != 0; }
  // Whether all that it has begun has ended.
  bool is_idle() const noexcept { return begun_.use_count() == 1; }
  // Once there is an engine: what each rank says of its messages with this one.
  void settle(std::span<const Tally> theirs);

  // How many of the next messages to, and from, a rank go by the host although there is an engine.
  std::int64_t owed_to(int rank) const noexcept {
    return owed_[static_cast<std::size_t>(rank)].sent;
  }
  std::int64_t owed_by(int rank) const noexcept {
    return owed_[static_cast<std::size_t>(rank)].received;
  }

  // Whether a stream waits for messages that have not ended.
  bool holds_streams() noexcept;

  // Has the host carry messages that have been put on a stream; arrays that are sent are copied
  // before anything comes. Their failures end the communicator.
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
  std::vector<std::weak_ptr<StagedExchange>> awaited_;  // by streams
  // Messages begin in the order of their calls. Each holds what counts them.
  std::uint64_t last_ = 0;
  std::shared_ptr<std::uint64_t> begun_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace hocket::device
