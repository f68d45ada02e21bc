// The order of a communicator's calls on its GPU: each follows the last, whatever their streams.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "foundation/base/deadline.h"
#include "foundation/cuda/stream.h"

namespace hocket::device {

// A resource, guarded by the communicator's turn; its GPU is current whenever it is used. Throws
// DeviceError.
class StreamOrder {
 public:
  explicit StreamOrder(std::shared_ptr<const cuda::DeviceContext> device)
      : device_(std::move(device)) {}

  // What is put on `stream` from here on waits for the last call.
  void follow(cuda::Stream stream);
  // The last call is what has been put on `stream` so far.
  void leave_mark(cuda::Stream stream);
  // Waits for the last call, well ended or not; false at the deadline.
  bool await_last(base::Deadline deadline);

 private:
  cuda::OwnedEvent& mark();
  bool is_last(cuda::Stream stream) const noexcept;

  const std::shared_ptr<const cuda::DeviceContext> device_;
  std::optional<cuda::Stream> last_stream_;
  std::optional<std::uint64_t> last_number_;  // of that stream; absent: not known
  std::unique_ptr<cuda::OwnedEvent> mark_;
  bool is_marked_ = false;  // `mark_` lies behind the last call
};

}  // namespace hocket::device
