#include "comm/stream_order.h"

#include <cstdint>

namespace hocket::comm {
namespace {

// The default streams of CUDA are never destroyed.
bool is_default(cuda::Stream stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

}  // namespace

cuda::OwnedEvent& StreamOrder::mark() {
  if (!mark_) mark_ = std::make_unique<cuda::OwnedEvent>(device_);
  return *mark_;
}

void StreamOrder::follow(cuda::Stream stream) {
  if (!last_stream_ || *last_stream_ == stream) return;
  if (!is_marked_) mark().record(*last_stream_);
  mark().hold(stream);
}

// A stream that its owner may destroy cannot be asked later.
void StreamOrder::leave_mark(cuda::Stream stream) {
  last_stream_ = stream;
  is_marked_ = !is_default(stream);
  if (is_marked_) mark().record(stream);
}

void StreamOrder::await_last(base::Deadline deadline) {
  if (!last_stream_) return;
  if (!is_marked_) mark().record(*last_stream_);
  mark().wait(deadline);
}

}  // namespace hocket::comm
