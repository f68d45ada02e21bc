// What a Work holds of a call that goes on on a GPU: a mark behind it on its stream.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "calls/call/operation.h"
#include "foundation/cuda/stream.h"

namespace hocket::device {

// A resource: events to be used again and again. Any thread.
class EventPool {
 public:
  explicit EventPool(std::shared_ptr<const cuda::DeviceContext> device)
      : device_(std::move(device)) {}
  std::unique_ptr<cuda::OwnedEvent> take();
  void give_back(std::unique_ptr<cuda::OwnedEvent> event) noexcept;
  const cuda::DeviceContext& device() const noexcept { return *device_; }

 private:
  std::shared_ptr<const cuda::DeviceContext> device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<cuda::OwnedEvent>> free_;  // guarded by mutex_
};

// A resource: the mark. One thread at a time.
class DeviceWork final : public call::StreamMark {
 public:
  // To be put on the stream by `put`.
  DeviceWork(std::shared_ptr<EventPool> pool, cuda::Stream stream);
  ~DeviceWork() override;
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  void put(cuda::Stream stream) { event_->record(stream); }
  bool passed() const override;
  void hold(StreamRef stream) const override;

 private:
  std::shared_ptr<EventPool> pool_;
  std::unique_ptr<cuda::OwnedEvent> event_;
  std::optional<std::uint64_t> number_;  // of the stream
};

}  // namespace hocket::device
