// The fabrics by which one process reaches other ranks' GPUs, one after the other.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engines/ucx/fabric.h"
#include "foundation/base/deadline.h"
#include "foundation/cuda/context.h"

namespace hocket::engines::ucx {

// A resource, one a process and job. Fabrics have numbers, which ranks agree on: those of a group
// use one that all of them have for the GPUs that they use there. A number stands for one fabric of
// one GPU here and is never used again, as peers keep one address a rank for it. So a new one
// comes, on all ranks of a group, where one of them has lost a connection: UCX's ends of it are
// never used again. A GPU's newest stays, older ones live as long as somebody uses them. Any
// thread.
class DeviceFabrics {
 public:
  using Device = std::shared_ptr<const cuda::DeviceContext>;
  // `make`: called with that device's context current, which UCX looks at. Throws SystemError.
  using Make = std::function<std::shared_ptr<Fabric>(const Device&)>;
  explicit DeviceFabrics(Make make) : make_(std::move(make)) {}

  // What a group of these ranks of the world wants, at least `least`: the GPU's newest, or a number
  // that is new here, and from now on this GPU's, where that has lost one of the ranks.
  int number_for(const Device& device, std::span<const int> ranks, int least = 0);
  // `number`: what this rank wanted, and all others of the group.
  std::shared_ptr<Fabric> get(const Device& device, int number);

  // See Fabric; of all that live.
  bool flush(base::Deadline deadline) noexcept;
  void retire() noexcept;

 private:
  struct Newest {
    int number = -1;
    std::shared_ptr<Fabric> fabric;  // null before somebody gets it
  };
  struct Known {
    int number;
    int ordinal;
    std::weak_ptr<Fabric> fabric;
  };
  std::vector<std::shared_ptr<Fabric>> living() noexcept;

  const Make make_;
  std::mutex mutex_;              // guards what follows
  int last_ = -1;                 // the largest number that is somebody's
  std::map<int, Newest> newest_;  // by the GPU's ordinal
  std::vector<Known> all_;
};

}  // namespace hocket::engines::ucx
