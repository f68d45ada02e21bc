// The kernels of one device, loaded.
#pragma once

#include <memory>
#include <string>

#include "engines/peer/plan.h"
#include "foundation/cuda/context.h"

namespace hocket::engines::peer {

// A resource: the kernels for groups of one size on one device, all of them loaded and run once, so
// that nothing is loaded or allocated beside a kernel that waits. Immutable once made; any thread.
// Throws DeviceError.
class PeerKernels {
 public:
  // Empty: the library has kernels; else why not.
  static std::string why_not();

  PeerKernels(std::shared_ptr<const cuda::DeviceContext> device, int size);
  ~PeerKernels();
  PeerKernels(const PeerKernels&) = delete;
  PeerKernels& operator=(const PeerKernels&) = delete;

  // How many blocks the device runs at a time, of whichever kernel waits for peers.
  int blocks_at_once() const;

  // Puts a step that is a kernel on the stream.
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
  bool begins_early_ = false;  // where the device and the driver can
};

}  // namespace hocket::engines::peer
