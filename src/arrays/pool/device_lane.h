// A worker's GPU: its context, its two streams, and the marks that order calls.
#pragma once

#include <memory>
#include <span>

#include "foundation/cuda/memory.h"
#include "foundation/cuda/stream.h"
#include "hocket/stream.h"

namespace hocket::pool {

// A resource. `announce` and `conclude` run in the caller's thread, `enter` and `leave` in the
// worker's; the crew orders them.
class DeviceLane {
 public:
  DeviceLane(std::shared_ptr<const cuda::Driver> driver, int ordinal);

  const cuda::DeviceContext& device() const noexcept { return *device_; }
  const cuda::Driver& driver() const noexcept { return device_->driver(); }
  StreamRef stream() const noexcept { return work_.get(); }
  StreamRef load_stream() const noexcept { return load_.get(); }

  // Makes the GPU current in this thread, permanently.
  void make_current() const;
  // Records an event after the present work of the caller's stream on this GPU.
  void announce(StreamRef caller);
  // Makes both streams wait for all announced events.
  void enter(std::span<const std::unique_ptr<DeviceLane>> lanes) const;
  // Records events after the present work of both streams.
  void leave();
  // Makes the caller's stream wait for the events of all lanes.
  void conclude(StreamRef caller, std::span<const std::unique_ptr<DeviceLane>> lanes) const;

  void copy(void* to, const void* from, std::size_t bytes) const;

 private:
  std::shared_ptr<const cuda::DeviceContext> device_;
  cuda::OwnedStream work_, load_;
  cuda::OwnedEvent announced_, worked_, loaded_;
};

}  // namespace hocket::pool
