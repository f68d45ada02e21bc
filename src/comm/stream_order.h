// The order of a communicator's calls on its GPU: each follows the last, whatever their streams.
#pragma once

#include <memory>
#include <optional>

#include "base/deadline.h"
#include "cuda/stream.h"

namespace hocket::comm {

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
  // Waits for the last call, well ended or not, until the deadline.
  void await_last(base::Deadline deadline);

 private:
  cuda::OwnedEvent& mark();

  const std::shared_ptr<const cuda::DeviceContext> device_;
  std::optional<cuda::Stream> last_stream_;
  std::unique_ptr<cuda::OwnedEvent> mark_;
  bool is_marked_ = false;  // `mark_` lies behind the last call
};

}  // namespace hocket::comm
