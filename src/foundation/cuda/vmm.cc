#include "foundation/cuda/vmm.h"

#include <fmt/format.h>

#include <utility>

#include "foundation/cuda/launch_gate.h"
#include "foundation/cuda/stream.h"

namespace hocket::cuda {
namespace {

AllocationProperties properties(const DeviceContext& device) {
  AllocationProperties made;
  made.location.id = device.ordinal();
  return made;
}

}  // namespace

std::size_t Mapping::rounded(const DeviceContext& device, std::size_t bytes) {
  const Driver& driver = device.driver();
  const AllocationProperties wanted = properties(device);
  std::size_t unit = 0;
  check(driver,
        driver.mem_get_allocation_granularity(&unit, &wanted, Granularity::kMinimum),
        fmt::format("make memory on GPU {} that other processes can map", device.ordinal()));
  return (bytes + unit - 1) / unit * unit;
}

// Takes ownership of `handle`, also if it throws.
Mapping::Mapping(std::shared_ptr<const DeviceContext> device,
                 AllocationHandle handle,
                 std::size_t bytes)
    : device_(std::move(device)), handle_(handle), bytes_(bytes) {
  const Driver& driver = device_->driver();
  const LaunchPause pause(*device_);
  const AccessDescription access{.location = {.id = device_->ordinal()}};
  Result result = driver.mem_address_reserve(&address_, bytes, 0, 0, 0);
  if (result == Result::kSuccess) result = driver.mem_map(address_, bytes, 0, handle, 0);
  if (result == Result::kSuccess) {
    result = driver.mem_set_access(address_, bytes, &access, 1);
    if (result != Result::kSuccess) driver.mem_unmap(address_, bytes);
  }
  if (result == Result::kSuccess) return;
  if (address_ != 0) driver.mem_address_free(address_, bytes);
  driver.mem_release(handle);
  throw_failure(driver, result, fmt::format("map {} bytes for GPU {}", bytes, device_->ordinal()));
}

Mapping Mapping::create(std::shared_ptr<const DeviceContext> device, std::size_t bytes) {
  const Driver& driver = device->driver();
  const DeviceGuard guard(*device);
  const AllocationProperties wanted = properties(*device);
  const std::size_t size = rounded(*device, bytes == 0 ? 1 : bytes);
  const LaunchPause pause(*device);
  AllocationHandle handle = 0;
  check(driver,
        driver.mem_create(&handle, size, &wanted, 0),
        fmt::format("allocate {} bytes on GPU {}", size, device->ordinal()));
  Mapping made(device, handle, size);
  const OwnedStream stream(device);
  Result result = driver.memset_d8_async(made.address_, 0, size, stream.get());
  if (result == Result::kSuccess) result = driver.stream_synchronize(stream.get());
  if (result == Result::kSuccess) return made;
  driver.stream_synchronize(stream.get());  // enqueued work must end before the memory is freed
  throw_failure(driver, result, "clear new memory of a GPU");
}

Mapping Mapping::import(std::shared_ptr<const DeviceContext> device,
                        const os::Fd& shared,
                        std::size_t bytes) {
  const Driver& driver = device->driver();
  const DeviceGuard guard(*device);
  AllocationHandle handle = 0;
  // The driver expects the descriptor's number itself in place of a pointer.
  void* descriptor = reinterpret_cast<void*>(static_cast<std::intptr_t>(shared.get()));
  check(driver,
        driver.mem_import_from_shareable_handle(&handle, descriptor, HandleType::kPosixFd),
        fmt::format("map another rank's memory for GPU {}", device->ordinal()));
  return Mapping(std::move(device), handle, bytes);
}

Mapping::Mapping(Mapping&& other) noexcept
    : device_(std::move(other.device_)),
      handle_(std::exchange(other.handle_, 0)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Mapping::~Mapping() {
  if (address_ == 0) return;
  const DeviceGuard guard(*device_);
  const Driver& driver = device_->driver();
  const LaunchPause pause(*device_);
  driver.mem_unmap(address_, bytes_);
  driver.mem_address_free(address_, bytes_);
  driver.mem_release(handle_);
}

os::Fd Mapping::share() const {
  const Driver& driver = device_->driver();
  int fd = -1;
  check(driver,
        driver.mem_export_to_shareable_handle(&fd, handle_, HandleType::kPosixFd, 0),
        fmt::format("share memory of GPU {} with other ranks", device_->ordinal()));
  return os::Fd(fd);
}

}  // namespace hocket::cuda
