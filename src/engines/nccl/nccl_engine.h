// Collectives between GPUs by NCCL.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/device_engine.h"
#include "engines/nccl/library.h"
#include "foundation/cuda/context.h"

namespace hocket::engines::nccl {

// The kinds that this engine has code for.
inline constexpr engine::KindSet kCarries = engine::kCommonKinds;

// See engine::DeviceEngine. It carries everything except operations that NCCL lacks or computes
// differently. These are bit operators, 16-bit integers, products of complex numbers and 8-bit
// floats. They also include minimum and maximum of floats, where NCCL drops NaNs. Sums of half
// types are rounded at every step.
//
// `connect` makes NCCL's communicator without blocking, so a missing rank leads to a deadline
// error. Its destruction takes a limited time.
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
  // The device limits the time of a call elsewhere. This value limits the time that the host waits.
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
  // Make NCCL's calls. Each throws DeviceError.
  void put(const engine::Call& call, cuda::Stream stream);
  void put_movement(const engine::Call& call, cuda::Stream stream);
  void put_all_to_all(const engine::Call& call, cuda::Stream stream);
  void put_reduce_scatter_v(const engine::Call& call, cuda::Stream stream);
  void send(const void* data, std::size_t bytes, int peer, cuda::Stream stream);
  void receive(void* data, std::size_t bytes, int peer, cuda::Stream stream);
  // Runs `calls` as one NCCL group.
  template <typename Calls>
  void group(const Calls& calls);
  void check(NcclResult status);
  // Waits until NCCL has started all earlier calls. NCCL starts some of them in the background.
  void settle(base::Deadline deadline, const std::function<void()>& look = {});
  // Does the same after a call. The first call needs the peers, because NCCL then makes its
  // connections.
  void settle_call();
  void destroy() noexcept;

  std::shared_ptr<const NcclLibrary> library_;
  std::shared_ptr<const cuda::DeviceContext> device_;
  engine::GroupFacts facts_;
  std::mutex mutex_;  // NCCL allows one call at a time for a communicator
  Comm comm_ = nullptr;
  Duration allowed_ = kForever;
  std::atomic<bool> aborted_{false};
  std::thread aborting_;
};

}  // namespace hocket::engines::nccl
