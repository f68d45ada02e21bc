// The order of a communicator's calls on its GPU: each call follows the previous one, on any
// streams.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "foundation/base/deadline.h"
#include "foundation/cuda/stream.h"

namespace hocket::device {

// A resource; the communicator's turn guards it. Its GPU must be current. It throws DeviceError.
class StreamOrder {
 public:
  explicit StreamOrder(std::shared_ptr<const cuda::DeviceContext> device)
      : device_(std::move(device)) {}

  // Makes later work of `stream` wait for the last call.
  void follow(cuda::Stream stream);
  // Makes the current work of `stream` the last call.
  void leave_mark(cuda::Stream stream);
  // Waits until the last call has ended, with or without error. Returns false at the deadline.
  bool await_last(base::Deadline deadline);

 private:
  cuda::OwnedEvent& mark();
  bool is_last(cuda::Stream stream) const noexcept;

  const std::shared_ptr<const cuda::DeviceContext> device_;
  std::optional<cuda::Stream> last_stream_;
  std::optional<std::uint64_t> last_number_;  // the driver's number of that stream; absent: unknown
  std::unique_ptr<cuda::OwnedEvent> mark_;
  bool is_marked_ = false;  // `mark_` is recorded behind the last call
};

}  // namespace hocket::device
