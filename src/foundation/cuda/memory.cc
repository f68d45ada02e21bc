#include "foundation/cuda/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "foundation/cuda/launch_gate.h"
#include "foundation/cuda/stream.h"
#include "hocket/error.h"

namespace hocket::cuda {
namespace {

std::string allocate_text(const Driver& driver, std::size_t bytes, int device) {
  std::size_t free = 0;
  std::size_t total = 0;
  driver.mem_get_info(&free, &total);
  return fmt::format(
      "allocate {} bytes on GPU {}, where {} of {} are free", bytes, device, free, total);
}

}  // namespace

DeviceBuffer::DeviceBuffer(std::shared_ptr<const DeviceContext> device, std::size_t bytes)
    : device_(std::move(device)), bytes_(bytes) {
  const DeviceGuard guard(*device_);
  const Driver& driver = device_->driver();
  const OutsideCapture outside(driver);
  const LaunchPause pause(*device_);
  const Result result = driver.mem_alloc(&address_, bytes == 0 ? 1 : bytes);
  if (result != Result::kSuccess) {
    throw_failure(driver, result, allocate_text(driver, bytes, device_->ordinal()));
  }
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : device_(std::move(other.device_)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

DeviceBuffer::~DeviceBuffer() {
  if (address_ == 0) return;
  const DeviceGuard guard(*device_);
  const OutsideCapture outside(device_->driver());
  const LaunchPause pause(*device_);
  device_->driver().mem_free(address_);
}

HostBuffer::HostBuffer(std::shared_ptr<const DeviceContext> device, std::size_t bytes)
    : device_(std::move(device)), bytes_(bytes) {
  const DeviceGuard guard(*device_);
  const Driver& driver = device_->driver();
  const OutsideCapture outside(driver);
  const LaunchPause pause(*device_);
  void* data = nullptr;
  check(driver,
        driver.mem_host_alloc(&data, bytes, kHostAllocPortable | kHostAllocDeviceMap),
        fmt::format("allocate {} bytes of page-locked host memory", bytes));
  data_ = static_cast<std::byte*>(data);
  std::memset(data_, 0, bytes);
  const Result mapped = driver.mem_host_get_device_pointer(&device_address_, data, 0);
  if (mapped != Result::kSuccess) driver.mem_free_host(data);
  check(driver, mapped, "map host memory for the GPU");
}

HostBuffer::~HostBuffer() {
  const DeviceGuard guard(*device_);
  const OutsideCapture outside(device_->driver());
  const LaunchPause pause(*device_);
  device_->driver().mem_free_host(data_);
}

ScratchMemory::ScratchMemory(const DeviceContext& device, std::size_t bytes, Stream stream)
    : driver_(device.driver()), stream_(stream) {
  const Result result = driver_.mem_alloc_async(&address_, bytes, stream);
  if (result != Result::kSuccess) {
    throw_failure(driver_, result, allocate_text(driver_, bytes, device.ordinal()));
  }
}

ScratchMemory::~ScratchMemory() { driver_.mem_free_async(address_, stream_); }

Whereabouts whereabouts(const Driver& driver, const void* address) {
  MemoryType type = MemoryType::kNone;
  int device = -1;
  PointerAttribute wanted[] = {PointerAttribute::kMemoryType, PointerAttribute::kDeviceOrdinal};
  void* values[] = {&type, &device};
  const Result result =
      driver.pointer_get_attributes(2, wanted, values, reinterpret_cast<DevicePtr>(address));
  if (result != Result::kSuccess || type != MemoryType::kDevice) return {};
  return {MemoryKind::kCuda, device};
}

int gpu_of(const Driver& driver, ConstArrayView array, std::string_view name) {
  if (array.device() >= 0) return array.device();
  const Whereabouts found = whereabouts(driver, array.data());
  if (found.memory == MemoryKind::kCuda) return found.device;
  throw InvalidArgument(fmt::format("{} is said to lie in a GPU's memory and does not", name));
}

// Asks the kernel to write a byte of the memory to a pipe. The kernel refuses if the process cannot
// read the memory.
bool is_reached_by_host(const std::shared_ptr<const DeviceContext>& device) {
  const DeviceBuffer memory(device, 64);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  const bool reached = ::write(ends[1], memory.data(), 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return reached;
}

void copy(const Driver& driver, void* to, const void* from, std::size_t bytes, Stream stream) {
  if (bytes == 0) return;
  check(driver,
        driver.memcpy_async(
            reinterpret_cast<DevicePtr>(to), reinterpret_cast<DevicePtr>(from), bytes, stream),
        "copy on the GPU");
}

}  // namespace hocket::cuda
