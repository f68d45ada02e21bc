// Memory of a GPU, and host memory that GPUs can access.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "foundation/cuda/context.h"
#include "hocket/array_view.h"
#include "hocket/types.h"

namespace hocket::cuda {

// A resource: uninitialized device memory. It can be moved. Any thread may use it. If there is not
// enough memory, the constructor throws DeviceError with the size and the free memory. The
// allocation is never part of a capture.
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

// A resource: zeroed, page-locked host memory. Every device of the process can access it at
// `device_address`. It holds words that host and kernels share, and staging buffers. Any thread may
// use it. The allocation is never part of a capture.
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

// A resource: device memory for work on one stream. Allocation and release are enqueued on this
// stream, also during a capture. Only one thread uses it. It must not outlive the device's context.
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

// The location of an address. A value.
struct Whereabouts {
  MemoryKind memory = MemoryKind::kHost;
  int device = -1;  // for kCuda: the device of the memory
};
// Returns whether an address is in a GPU's memory, and in which GPU's. Page-locked host memory, and
// memory unknown to the driver, count as host memory.
Whereabouts whereabouts(const Driver& driver, const void* address);
// Returns the GPU whose memory contains an array: the view's device if the view names one, else the
// driver's answer. Throws InvalidArgument if the array is not in a GPU's memory; the message calls
// it `name`.
int gpu_of(const Driver& driver, ConstArrayView array, std::string_view name);

// Returns whether the CPU can access a device's memory.
bool is_reached_by_host(const std::shared_ptr<const DeviceContext>& device);

// Enqueues a copy on `stream`. If one side is pageable host memory, the caller may have to wait.
void copy(const Driver& driver, void* to, const void* from, std::size_t bytes, Stream stream);

}  // namespace hocket::cuda
