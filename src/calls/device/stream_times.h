// How long calls run on their streams, for the metrics of a job that keeps them.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "calls/call/tracing.h"
#include "foundation/cuda/stream.h"

namespace hocket::device {

// A resource, guarded by the communicator's turn; its GPU is current whenever it is used. Nothing
// of it waits: who makes the next call counts those that have ended meanwhile.
class StreamTimes {
 public:
  explicit StreamTimes(std::shared_ptr<const cuda::DeviceContext> device)
      : device_(std::move(device)) {}

  // What `put` puts on `stream` is one call, or messages that begin together. Throws what it
  // throws.
  template <typename Put>
  void take(cuda::Stream stream, call::CountedTogether counted, Put&& put) {
    begin(stream);
    put();
    end(stream, std::move(counted));
  }
  // Counts those that have ended.
  void look() noexcept;

 private:
  // Two marks with time stamps.
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
  std::unique_ptr<Span> next_;  // its first mark lies on a stream, once `begin` has been called
  std::deque<Running> running_;
  std::vector<std::unique_ptr<Span>> free_;
};

}  // namespace hocket::device
