// The fabrics through which one process reaches other ranks' GPUs, in the order of their creation.
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

// A resource, one for each process and job. Any thread may use it.
//
// Fabrics have numbers. The ranks of a group agree on a number that all of them have for the GPUs
// that they use in it. A number identifies one fabric of one GPU in this process. It is never
// reused, because peers keep one address of each rank for it.
//
// If a rank of a group has lost a connection, all its ranks get a new fabric. UCX cannot reuse the
// endpoints of a lost connection. The newest fabric of a GPU stays. Older ones live as long as they
// are used.
class DeviceFabrics {
 public:
  using Device = std::shared_ptr<const cuda::DeviceContext>;
  // `make` is called with the device's context current, because UCX looks at it. It throws
  // SystemError.
  using Make = std::function<std::shared_ptr<Fabric>(const Device&)>;
  explicit DeviceFabrics(Make make) : make_(std::move(make)) {}

  // Returns the number that this rank wants for a group of these world ranks. It is at least
  // `least`. It is the GPU's newest number, or a new one if that fabric has lost one of the ranks.
  // A new number becomes the GPU's newest.
  int number_for(const Device& device, std::span<const int> ranks, int least = 0);
  // `number` is a number that all ranks of the group wanted.
  std::shared_ptr<Fabric> get(const Device& device, int number);

  // Do the same as in Fabric, for all living fabrics.
  bool flush(base::Deadline deadline) noexcept;
  void retire() noexcept;

 private:
  struct Newest {
    int number = -1;
    std::shared_ptr<Fabric> fabric;  // null until the first `get`
  };
  struct Known {
    int number;
    int ordinal;
    std::weak_ptr<Fabric> fabric;
  };
  std::vector<std::shared_ptr<Fabric>> living() noexcept;

  const Make make_;
  std::mutex mutex_;              // guards the members below
  int last_ = -1;                 // the largest number in use
  std::map<int, Newest> newest_;  // by the GPU's ordinal
  std::vector<Known> all_;
};

}  // namespace hocket::engines::ucx
