#include "calls/device/streams/times.h"

#include <utility>

namespace hocket::device {

using Timing = cuda::OwnedEvent::Timing;

void StreamTimes::begin(cuda::Stream stream) {
  look();
  if (!next_ && free_.empty()) {
    next_.reset(new Span{.begin = cuda::OwnedEvent(device_, Timing::kOn),
                         .end = cuda::OwnedEvent(device_, Timing::kOn)});
  } else if (!next_) {
    next_ = std::move(free_.back());
    free_.pop_back();
  }
  next_->begin.record(stream);
}

void StreamTimes::end(cuda::Stream stream, call::CountedTogether counted) {
  next_->end.record(stream);
  running_.push_back({.span = std::move(next_), .counted = std::move(counted)});
}

// Checks only the oldest calls, because calls of one communicator end in their order.
void StreamTimes::look() noexcept {
  try {
    while (!running_.empty() && running_.front().span->end.passed()) {
      Running ended = std::move(running_.front());
      running_.pop_front();
      ended.counted.end_after(ended.span->end.since(ended.span->begin));
      free_.push_back(std::move(ended.span));
    }
  } catch (const std::exception&) {  // the GPU has failed; the next call reports it
    running_.clear();
  }
}

}  // namespace hocket::device
