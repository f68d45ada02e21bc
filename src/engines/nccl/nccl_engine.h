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

// See engine::DeviceEngine. It carries everything except reductions that NCCL lacks or computes
// differently from hocket. These are bit operators, 16-bit integers, 8-bit floats, products of
// complex numbers, and averages of integers. Minimum and maximum of floats are also not carried,
// because NCCL drops NaNs in them. The engine does carry sums of 16-bit floats, although NCCL
// rounds them at every step.
//
// `connect` makes NCCL's communicator in NCCL's nonblocking mode, so a missing rank leads to a
// deadline error. The destructor takes a limited time.
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
  // Returns false, because hocket's watch on the device limits the time of a call. `allowed` also
  // limits how long the host waits for a launch.
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
  // Make NCCL's calls for a collective, or for messages. Each function throws DeviceError.
  void put(const engine::Call& call, cuda::Stream stream);
  void put(std::span<const engine::DeviceMessage> messages, cuda::Stream stream);
  void put_movement(const engine::Call& call, cuda::Stream stream);
  void put_all_to_all(const engine::Call& call, cuda::Stream stream);
  void put_reduce_scatter_v(const engine::Call& call, cuda::Stream stream);
  void send(const void* data, std::size_t bytes, int peer, cuda::Stream stream);
  void receive(void* data, std::size_t bytes, int peer, cuda::Stream stream);
  // Runs `calls` as one NCCL group.
  template <typename Calls>
  void group(const Calls& calls);
  void check(NcclResult status);
  // Waits until NCCL has started all earlier calls, because NCCL starts some calls in the
  // background. `look` is called meanwhile; it may throw.
  void wait_until_started(base::Deadline deadline, const std::function<void()>& look = {});
  // Waits until NCCL has started the current call, with the time limit of calls. The first call
  // waits for the peers, because NCCL then makes its connections.
  void wait_for_call();
  void destroy() noexcept;

  std::shared_ptr<const NcclLibrary> library_;
  std::shared_ptr<const cuda::DeviceContext> device_;
  engine::GroupFacts facts_;
  std::mutex mutex_;  // NCCL allows only one call on a communicator at a time
  Comm comm_ = nullptr;
  Duration allowed_ = kForever;
  std::atomic<bool> aborted_{false};
  std::thread aborting_;
};

}  // namespace hocket::engines::nccl
