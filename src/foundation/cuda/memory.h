// Memory of a device, and host memory that devices reach.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "foundation/cuda/context.h"
#include "hocket/array_view.h"
#include "hocket/types.h"

namespace hocket::cuda {

// A resource: plain device memory, uninitialized. Movable; any thread. Throws DeviceError, which
// names the size and what is free, where there is not enough. Taken and freed beside any capture.
class DeviceBuffer {
 public:
  DeviceBuffer(std::shared_ptr<const DeviceContext> device, std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;

  DevicePtr address() const noexcept { return address_; }
  void* data() const noexcept { return reinterpret_cast<void*>(address_); }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::shared_ptr<const DeviceContext> device_;
  DevicePtr address_ = 0;
  std::size_t bytes_ = 0;
};

// A resource: zeroed, page-locked host memory that every device of the process reaches under
// `device_address`. For words between host and kernels, and for staging. Any thread. Taken and
// freed beside any capture.
class HostBuffer {
 public:
  HostBuffer(std::shared_ptr<const DeviceContext> device, std::size_t bytes);
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::byte* data() const noexcept { return data_; }
  DevicePtr device_address() const noexcept { return device_address_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::shared_ptr<const DeviceContext> device_;
  std::byte* data_ = nullptr;
  DevicePtr device_address_ = 0;
  std::size_t bytes_ = 0;
};

// A resource: device memory for work of one stream, which is taken and given back as work of that
// stream; also while it is captured. One thread; lives at most as long as the device's context.
class ScratchMemory {
 public:
  ScratchMemory(const DeviceContext& device, std::size_t bytes, Stream stream);
  ~ScratchMemory();
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;
  void* data() const noexcept { return reinterpret_cast<void*>(address_); }

 private:
  const Driver& driver_;
  Stream stream_;
  DevicePtr address_ = 0;
};

// Where an address lies. A value.
struct Whereabouts {
  MemoryKind memory = MemoryKind::kHost;
  int device = -1;  // kCuda: whose memory
};
// Host memory that no driver knows of is host memory; so is page-locked host memory.
Whereabouts whereabouts(const Driver& driver, const void* address);
// The GPU in whose memory an array lies: as it says itself, or else as the driver does. Throws
// InvalidArgument, which calls it `name`, where it does not lie in a GPU's memory.
int gpu_of(const Driver& driver, ConstArrayView array, std::string_view name);

// Whether the processor reaches a device's plain memory, too.
bool is_reached_by_host(const std::shared_ptr<const DeviceContext>& device);

// Copies as work of `stream`; host memory that is not page-locked makes the caller wait.
void copy(const Driver& driver, void* to, const void* from, std::size_t bytes, Stream stream);

}  // namespace hocket::cuda
