// The part of a Work for a call on a GPU: a mark behind the call on its stream.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "calls/call/operation.h"
#include "foundation/cuda/stream.h"

namespace hocket::device {

// A resource: reusable events. Any thread may use it.
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

// A resource: the mark. One thread uses it at a time.
class DeviceWork final : public call::StreamMark {
 public:
  // `put` must record it on the stream.
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
  std::optional<std::uint64_t> number_;  // the driver's number of the stream
};

}  // namespace hocket::device
