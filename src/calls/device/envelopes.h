// The envelopes that the two ends of a message between GPUs exchange on the host. They are needed
// because engines move bytes without comparing anything, and streams cannot determine a sender.
#pragma once

#include <memory>

#include "hocket/communicator.h"

namespace hocket::call {
class Core;
}

namespace hocket::device {

// A resource, one for each communicator; the communicator's turn guards it. Envelopes between two
// ranks are matched in the order in which their GPUs match the messages. If the two ends differ,
// the communicator ends with a Mismatch.
class DeviceEnvelopes {
 public:
  explicit DeviceEnvelopes(call::Core& owner) : owner_(owner) {}

  // Sends the envelope to the receiver. Does not wait.
  void announce(const Outgoing& message);
  // Compares the expected message with the sender's envelope, now or when it arrives.
  void expect(const Incoming& message);
  // Waits until some rank has announced a message for `message`, and returns that rank.
  int await_any(const Incoming& message, Duration allowed);
  // Returns whether all envelopes have been matched.
  bool is_idle() const noexcept { return open_.use_count() == 1; }

 private:
  call::Core& owner_;
  std::shared_ptr<void> open_ = std::make_shared<int>(0);  // held by unmatched envelopes
};

}  // namespace hocket::device
