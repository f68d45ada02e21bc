#include "calls/device/streams/work.h"

namespace hocket::device {

std::unique_ptr<cuda::OwnedEvent> EventPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      auto event = std::move(free_.back());
      free_.pop_back();
      return event;
    }
  }
  return std::make_unique<cuda::OwnedEvent>(device_);
}

void EventPool::give_back(std::unique_ptr<cuda::OwnedEvent> event) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(event));
  } catch (const std::bad_alloc&) {  // the event is destroyed
  }
}

DeviceWork::DeviceWork(std::shared_ptr<EventPool> pool, cuda::Stream stream)
    : pool_(std::move(pool)),
      event_(pool_->take()),
      number_(cuda::number_of(pool_->device().driver(), stream)) {}

DeviceWork::~DeviceWork() { pool_->give_back(std::move(event_)); }

bool DeviceWork::passed() const { return event_->passed(); }

void DeviceWork::hold(StreamRef ref) const {
  const cuda::Stream stream = ref.handle();
  const cuda::DeviceGuard guard(pool_->device());
  if (number_ && number_ == cuda::number_of(pool_->device().driver(), stream)) return;
  event_->hold(stream);
}

}  // namespace hocket::device
