#include "calls/device/streams/order.h"

#include <cstdint>

namespace hocket::device {
namespace {

// Recognizes both names of the default stream. It is never destroyed, and the same in all threads.
bool is_default(cuda::Stream stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 1; }

}  // namespace

cuda::OwnedEvent& StreamOrder::mark() {
  if (!mark_) mark_ = std::make_unique<cuda::OwnedEvent>(device_);
  return *mark_;
}

bool StreamOrder::is_last(cuda::Stream stream) const noexcept {
  if (is_default(stream) && is_default(*last_stream_)) return true;
  return last_number_ && last_number_ == cuda::number_of(device_->driver(), stream);
}

void StreamOrder::follow(cuda::Stream stream) {
  if (!last_stream_ || is_last(stream)) return;
  if (!is_marked_) mark().record(*last_stream_);
  mark().hold(stream);
}

// Records the mark now, because the program may destroy the stream later.
void StreamOrder::leave_mark(cuda::Stream stream) {
  last_stream_ = stream;
  is_marked_ = !is_default(stream);
  last_number_.reset();
  if (!is_marked_) return;
  mark().record(stream);
  last_number_ = cuda::number_of(device_->driver(), stream);
}

bool StreamOrder::await_last(base::Deadline deadline) {
  if (!last_stream_) return true;
  if (!is_marked_) mark().record(*last_stream_);
  return mark().wait(deadline);
}

}  // namespace hocket::device
