// What the two ends of a message between GPUs say of it to each other on the host: engines move
// bytes and compare nothing, and streams cannot ask who has sent.
#pragma once

#include <memory>

#include "hocket/communicator.h"

namespace hocket::call {
class Core;
}

namespace hocket::device {

// A resource, one a communicator; guarded by the communicator's turn. Messages of two ranks meet
// here in the order in which their GPUs' meet. Ends that differ end the communicator, as a
// Mismatch.
class DeviceEnvelopes {
 public:
  explicit DeviceEnvelopes(call::Core& owner) : owner_(owner) {}

  // Tells the receiver what will come. Waits for nobody.
  void announce(const Outgoing& message);
  // Compares what is to come with what the sender says, now or when it does.
  void expect(const Incoming& message);
  // Waits until any rank has announced what is to come; which one.
  int await_any(const Incoming& message, Duration allowed);
  // Whether all have met.
  bool is_idle() const noexcept { return open_.use_count() == 1; }

 private:
  call::Core& owner_;
  std::shared_ptr<void> open_ = std::make_shared<int>(0);  // held by those that have not met
};

}  // namespace hocket::device
