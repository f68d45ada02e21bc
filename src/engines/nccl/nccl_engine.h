// Collectives of GPUs by NCCL.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/device_engine.h"
#include "engines/nccl/library.h"
#include "foundation/cuda/context.h"

namespace hocket::engines::nccl {

// Kinds that it has code for.
inline constexpr engine::KindSet kCarries = engine::kCommonKinds;

// See engine::DeviceEngine. Carries everything but what NCCL cannot, or does otherwise than hocket
// promises: bit operators, integers of 16 bits, products of complex numbers, the 8-bit floats, and
// minimum and maximum of floating-point numbers, where NCCL drops NaNs. Sums of half types are
// rounded at every step.
//
// NCCL's communicator is made at `connect`, without blocking, so that a rank that never comes ends
// in the deadline; it is destroyed in bounded time.
class NcclEngine final : public engine::DeviceEngine {
 public:
  NcclEngine(std::shared_ptr<const NcclLibrary> library,
             std::shared_ptr<const cuda::DeviceContext> device,
             const engine::GroupFacts& facts);
  ~NcclEngine() override;

  std::string_view name() const noexcept override { return "nccl"; }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override;
  void connect(const engine::Introduction& introduction) override;
  void enqueue(const engine::Call& call, StreamRef stream) override;
  // Others watch the time on the device; what is kept here bounds what the host waits.
  bool keeps_time(Duration allowed, std::uint64_t /*sequence*/) noexcept override {
    allowed_ = allowed;
    return false;
  }
  bool meets_on_device() const noexcept override { return facts_.size > 1; }
  bool has_messages() const noexcept override { return true; }
  void exchange(std::span<const engine::DeviceMessage> messages, StreamRef stream) override;
  std::optional<engine::DeviceProblem> problem() noexcept override;
  void abort() noexcept override;

 private:
  // NCCL's calls; each throws DeviceError.
  void put(const engine::Call& call, cuda::Stream stream);
  void put_movement(const engine::Call& call, cuda::Stream stream);
  void put_all_to_all(const engine::Call& call, cuda::Stream stream);
  void put_reduce_scatter_v(const engine::Call& call, cuda::Stream stream);
  void send(const void* data, std::size_t bytes, int peer, cuda::Stream stream);
  void receive(void* data, std::size_t bytes, int peer, cuda::Stream stream);
  // Runs `calls` as one group.
  template <typename Calls>
  void group(const Calls& calls);
  void check(NcclResult status);
  // Waits until what the last calls began in the background has been begun.
  void settle(base::Deadline deadline, const std::function<void()>& look = {});
  // The same after a call. Its first needs the peers, as NCCL makes its connections then.
  void settle_call();
  void destroy() noexcept;

  std::shared_ptr<const NcclLibrary> library_;
  std::shared_ptr<const cuda::DeviceContext> device_;
  engine::GroupFacts facts_;
  std::mutex mutex_;  // one call at a time into NCCL for this communicator
  Comm comm_ = nullptr;
  Duration allowed_ = kForever;
  std::atomic<bool> aborted_{false};
  std::thread aborting_;
};

}  // namespace hocket::engines::nccl
