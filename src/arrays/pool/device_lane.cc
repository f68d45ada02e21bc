#include "arrays/pool/device_lane.h"

namespace hocket::pool {

DeviceLane::DeviceLane(std::shared_ptr<const cuda::Driver> driver, int ordinal)
    : device_(std::make_shared<cuda::DeviceContext>(std::move(driver), ordinal)),
      work_(device_),
      load_(device_),
      announced_(device_),
      worked_(device_),
      loaded_(device_) {}

void DeviceLane::make_current() const {
  cuda::check(driver(), driver().ctx_set_current(device_->handle()), "make a GPU current");
}

void DeviceLane::announce(StreamRef caller) {
  const cuda::DeviceGuard guard(*device_);
  announced_.record(caller.handle());
}

void DeviceLane::enter(std::span<const std::unique_ptr<DeviceLane>> lanes) const {
  for (const auto& lane : lanes) {
    lane->announced_.hold(work_.get());
    lane->announced_.hold(load_.get());
  }
}

void DeviceLane::leave() {
  worked_.record(work_.get());
  loaded_.record(load_.get());
}

void DeviceLane::conclude(StreamRef caller,
                          std::span<const std::unique_ptr<DeviceLane>> lanes) const {
  const cuda::DeviceGuard guard(*device_);
  for (const auto& lane : lanes) {
    lane->worked_.hold(caller.handle());
    lane->loaded_.hold(caller.handle());
  }
}

void DeviceLane::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes > 0) cuda::copy(driver(), to, from, bytes, work_.get());
}

}  // namespace hocket::pool
