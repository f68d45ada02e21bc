// The fabrics through which one process reaches the GPUs of other ranks.
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

// There is one object for each process and job. Any thread may use it. A resource.
//
// Fabrics have numbers. The ranks of a group agree on one number. Under this number each rank has a
// fabric for the GPU that it uses in the group. In this process a number identifies one fabric of
// one GPU. A number is never reused, because peers keep one address of each rank for it.
//
// If a rank of a group has lost a connection, all ranks of the group get a new fabric. The reason:
// UCX cannot reuse the endpoints of a lost connection. This object keeps the newest fabric of each
// GPU. Older fabrics live as long as they are used.
class DeviceFabrics {
 public:
  using Device = std::shared_ptr<const cuda::DeviceContext>;
  // `make` is called with the device's context current, because UCX uses the current context. It
  // throws SystemError.
  using Make = std::function<std::shared_ptr<Fabric>(const Device&)>;
  explicit DeviceFabrics(Make make) : make_(std::move(make)) {}

  // Returns the number that this rank proposes for a group of these world ranks, at least `least`.
  // It is the newest number of the GPU. If this number is too small, or its fabric has lost one of
  // the ranks, it is a new number, which becomes the GPU's newest.
  int number_for(const Device& device, std::span<const int> ranks, int least = 0);
  // Returns the fabric with this number, and makes it if necessary. All ranks of the group must
  // have proposed `number`.
  std::shared_ptr<Fabric> get(const Device& device, int number);

  // Call the functions of all living fabrics; see Fabric.
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
