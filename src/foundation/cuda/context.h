// A device's primary context. CuPy, PyTorch and the CUDA runtime use the same context.
#pragma once

#include <memory>
#include <string>

#include "foundation/cuda/driver.h"

namespace hocket::cuda {

// A resource: keeps the primary context of one device alive. Any thread may use it. The constructor
// throws DeviceError if the device does not exist, or if the driver refuses.
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
  // Returns the device's name: "NVIDIA H200".
  std::string name() const;
  // Returns the PCI address, which is the same in all processes: "0000:1b:00.0".
  std::string bus_id() const;

 private:
  std::shared_ptr<const Driver> driver_;
  int ordinal_;
  int device_ = 0;
  Context context_ = nullptr;
};

// Makes a device's context current in this thread until the end of the scope. It is cheap if the
// context is current already. The driver refuses when the process ends; all later calls then fail
// too.
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
  // Returns false if the driver refused.
  bool is_current() const noexcept { return is_current_; }

 private:
  const Driver& driver_;
  bool pushed_ = false;
  bool is_current_ = false;
};

}  // namespace hocket::cuda
