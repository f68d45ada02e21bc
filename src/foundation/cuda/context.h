// A device's primary context: the one that CuPy, PyTorch and the CUDA runtime use too.
#pragma once

#include <memory>
#include <string>

#include "foundation/cuda/driver.h"

namespace hocket::cuda {

// A resource: holds the context of one device for as long as it lives. Any thread. Throws
// DeviceError where the device is not there or refuses.
class DeviceContext {
 public:
  DeviceContext(std::shared_ptr<const Driver> driver, int ordinal);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  const Driver& driver() const noexcept { return *driver_; }
  int ordinal() const noexcept { return ordinal_; }
  Context handle() const noexcept { return context_; }

  int attribute(DeviceAttribute attribute) const;
  // "NVIDIA H200".
  std::string name() const;
  // Where it sits, the same in all processes: "0000:1b:00.0".
  std::string bus_id() const;

 private:
  std::shared_ptr<const Driver> driver_;
  int ordinal_;
  int device_ = 0;
  Context context_ = nullptr;
};

// Makes a device's context this thread's current one until the end of the scope. Cheap where it is
// already. Where the driver refuses (when the process ends), so does whatever follows.
class DeviceGuard {
 public:
  explicit DeviceGuard(const DeviceContext& device) noexcept : driver_(device.driver()) {
    Context current = nullptr;
    driver_.ctx_get_current(&current);
    is_current_ = current == device.handle();
    if (is_current_) return;
    pushed_ = driver_.ctx_push_current(device.handle()) == Result::kSuccess;
    is_current_ = pushed_;
  }
  ~DeviceGuard() {
    if (!pushed_) return;
    Context popped = nullptr;
    driver_.ctx_pop_current(&popped);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  // False where the driver refuses.
  bool is_current() const noexcept { return is_current_; }

 private:
  const Driver& driver_;
  bool pushed_ = false;
  bool is_current_ = false;
};

}  // namespace hocket::cuda
