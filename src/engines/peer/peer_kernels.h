// The loaded kernels of one device.
#pragma once

#include <memory>
#include <string>

#include "engines/peer/plan.h"
#include "foundation/cuda/context.h"

namespace hocket::engines::peer {

// A resource: the kernels for groups of one size on one device. The constructor loads and runs all
// of them once, so that no load or allocation happens beside a waiting kernel. It throws
// DeviceError. The object does not change afterwards; any thread may use it.
class PeerKernels {
 public:
  // Returns "" if the library has kernels, else the reason.
  static std::string why_not();

  PeerKernels(std::shared_ptr<const cuda::DeviceContext> device, int size);
  ~PeerKernels();
  PeerKernels(const PeerKernels&) = delete;
  PeerKernels& operator=(const PeerKernels&) = delete;

  // Returns how many blocks of any waiting kernel the device can run at the same time.
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
  bool begins_early_ = false;  // if the device and the driver support it
};

}  // namespace hocket::engines::peer
