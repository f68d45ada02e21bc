// The fabrics by which one process reaches other ranks' GPUs, one after the other.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "cuda/context.h"
#include "engines/ucx/fabric.h"

namespace hocket::engines::ucx {

// A resource, one a process and job. Fabrics have numbers, which ranks agree on: those of a group
// use the one with the largest number that any of them wants. So a new one comes, on all ranks of a
// group, where one of them has lost a connection: UCX's ends of it are never used again. Older ones
// live as long as somebody uses them. Any thread.
class DeviceFabrics {
 public:
  using Device = std::shared_ptr<const cuda::DeviceContext>;
  // `make`: called with that device's context current, which UCX looks at. Throws SystemError.
  using Make = std::function<std::shared_ptr<Fabric>(const Device&)>;
  explicit DeviceFabrics(Make make) : make_(std::move(make)) {}

  // What a group of these ranks of the world wants: the newest, or one after it where that is of
  // another GPU or has lost one of the ranks.
  int number_for(const Device& device, std::span<const int> ranks);
  // `number`: at least what this rank wanted.
  std::shared_ptr<Fabric> get(const Device& device, int number);

  // See Fabric; of all that live.
  bool flush(base::Deadline deadline) noexcept;
  void retire() noexcept;

 private:
  std::vector<std::shared_ptr<Fabric>> living() noexcept;

  const Make make_;
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<Fabric> newest_;
  int number_ = 0;
  int ordinal_ = -1;  // of the newest's GPU
  std::vector<std::weak_ptr<Fabric>> all_;
};

}  // namespace hocket::engines::ucx
