// The run times of calls on their streams, for a job that keeps metrics.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "calls/call/tracing.h"
#include "foundation/cuda/stream.h"

namespace hocket::device {

// A resource; the communicator's turn guards it. Its GPU must be current. Nothing here waits: the
// next call counts the calls that have ended meanwhile.
class StreamTimes {
 public:
  explicit StreamTimes(std::shared_ptr<const cuda::DeviceContext> device)
      : device_(std::move(device)) {}

  // Times the work that `put` enqueues on `stream`: one call, or messages that begin together.
  // Throws what `put` throws.
  template <typename Put>
  void take(cuda::Stream stream, call::CountedTogether counted, Put&& put) {
    begin(stream);
    put();
    end(stream, std::move(counted));
  }
  // Counts the calls that have ended.
  void look() noexcept;

 private:
  // Two events with time stamps.
  struct Span {
    cuda::OwnedEvent begin, end;
  };
  struct Running {
    std::unique_ptr<Span> span;
    call::CountedTogether counted;
  };

  void begin(cuda::Stream stream);
  void end(cuda::Stream stream, call::CountedTogether counted);

  const std::shared_ptr<const cuda::DeviceContext> device_;
  std::unique_ptr<Span> next_;  // the span of the call that is being enqueued
  std::deque<Running> running_;
  std::vector<std::unique_ptr<Span>> free_;
};

}  // namespace hocket::device
