#include "foundation/cuda/context.h"

#include <fmt/format.h>

#include <array>

#include "hocket/error.h"

namespace hocket::cuda {

DeviceContext::DeviceContext(std::shared_ptr<const Driver> driver, int ordinal)
    : driver_(std::move(driver)), ordinal_(ordinal) {
  if (ordinal < 0 || ordinal >= driver_->devices()) {
    throw DeviceError(fmt::format(
        "there is no GPU {}; this process sees {}, numbered from 0", ordinal, driver_->devices()));
  }
  check(*driver_, driver_->device_get(&device_, ordinal), fmt::format("find GPU {}", ordinal));
  check(*driver_,
        driver_->device_primary_ctx_retain(&context_, device_),
        fmt::format("use GPU {}", ordinal));
}

DeviceContext::~DeviceContext() { driver_->device_primary_ctx_release(device_); }

int DeviceContext::attribute(DeviceAttribute attribute) const {
  int value = 0;
  check(*driver_,
        driver_->device_get_attribute(&value, attribute, device_),
        fmt::format("ask GPU {} what it is", ordinal_));
  return value;
}

std::string DeviceContext::name() const {
  std::array<char, 256> text{};
  driver_->device_get_name(text.data(), static_cast<int>(text.size()), device_);
  return text.data();
}

std::string DeviceContext::bus_id() const {
  std::array<char, 32> text{};
  driver_->device_get_pci_bus_id(text.data(), static_cast<int>(text.size()), device_);
  return text.data();
}

}  // namespace hocket::cuda
