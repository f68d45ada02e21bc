// Device memory that other processes of the host can map, by a file descriptor.
#pragma once

#include <cstddef>
#include <memory>

#include "foundation/cuda/context.h"
#include "foundation/os/fd.h"

namespace hocket::cuda {

// A resource: a range of addresses backed by physical memory of one device, which may be another
// process's. The memory lives until the last mapping of it is gone, also after its owner's death.
// Movable; any thread. Throws DeviceError.
class Mapping {
 public:
  // New memory on `device`, zeroed; `bytes` are rounded up to the granularity.
  static Mapping create(std::shared_ptr<const DeviceContext> device, std::size_t bytes);
  // What another rank's `share` gave: `bytes` as the owner's bytes() says. Reached from `device`.
  static Mapping import(std::shared_ptr<const DeviceContext> device,
                        const os::Fd& shared,
                        std::size_t bytes);
  // Bytes that `create` would really take.
  static std::size_t rounded(const DeviceContext& device, std::size_t bytes);

  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();

  // A descriptor for the memory, to be sent to others.
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
