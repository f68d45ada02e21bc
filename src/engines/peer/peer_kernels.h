// The GPU kernels that are loaded on one device.
#pragma once

#include <memory>
#include <string>

#include "engines/peer/plan.h"
#include "foundation/cuda/context.h"

namespace hocket::engines::peer {

// The kernels for groups of one size on one device. The constructor loads all kernels and runs each
// of them once. So the driver loads and allocates nothing while a kernel waits for its peers. It
// throws DeviceError. The object does not change afterwards, so any thread may use it. A resource.
class PeerKernels {
 public:
  // Returns "" if the library contains kernels, otherwise the reason why not.
  static std::string why_not();

  PeerKernels(std::shared_ptr<const cuda::DeviceContext> device, int size);
  ~PeerKernels();
  PeerKernels(const PeerKernels&) = delete;
  PeerKernels& operator=(const PeerKernels&) = delete;

  // Returns how many blocks the device can run at the same time. This is the minimum over all
  // kernels.
  int blocks_at_once() const;

  // Launches the kernel of a step on the stream.
  void launch(const Step& step, cuda::Stream stream) const;

 private:
  cuda::Module load(std::span<const std::byte> image) const;
  void find_functions();
  bool may_begin_early() const;
  void run_all() const;

  std::shared_ptr<const cuda::DeviceContext> device_;
  cuda::Module move_ = nullptr;
  cuda::Module fold_ = nullptr;
  cuda::Function functions_[kProtocolCount][kFoldingCount] = {};
  int size_;
  bool begins_early_ = false;  // see may_begin_early
};

}  // namespace hocket::engines::peer
