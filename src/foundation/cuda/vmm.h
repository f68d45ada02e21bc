// Device memory that other processes of the host can map through a file descriptor.
#pragma once

#include <cstddef>
#include <memory>

#include "foundation/cuda/context.h"
#include "foundation/os/fd.h"

namespace hocket::cuda {

// A resource: a range of this process's addresses, backed by memory of one device. The memory may
// belong to another process. It lives until its last mapping is gone, even after its owner's death.
// A Mapping can be moved. Any thread may use it. Throws DeviceError.
class Mapping {
 public:
  // Allocates zeroed memory on `device`. `bytes` is rounded up to the device's granularity.
  static Mapping create(std::shared_ptr<const DeviceContext> device, std::size_t bytes);
  // Maps memory that another rank has shared with `share`, for access from `device`. `bytes` is the
  // owner's bytes().
  static Mapping import(std::shared_ptr<const DeviceContext> device,
                        const os::Fd& shared,
                        std::size_t bytes);
  // Returns the size to which `create` rounds `bytes` up.
  static std::size_t rounded(const DeviceContext& device, std::size_t bytes);

  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();

  // Returns a descriptor of the memory. The caller owns it and may send it to other processes.
  os::Fd share() const;

  DevicePtr address() const noexcept { return address_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  Mapping(std::shared_ptr<const DeviceContext> device, AllocationHandle handle, std::size_t bytes);
  std::shared_ptr<const DeviceContext> device_;
  AllocationHandle handle_ = 0;
  DevicePtr address_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace hocket::cuda
