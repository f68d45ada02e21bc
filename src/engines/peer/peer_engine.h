// Collectives and messages between GPUs of one host, by kernels of our own.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/device_engine.h"
#include "engines/peer/peer_kernels.h"
#include "engines/peer/plan.h"
#include "foundation/cuda/memory.h"
#include "foundation/cuda/vmm.h"

namespace hocket::engines::peer {

// See engine::DeviceEngine. Carries everything, for up to kMaxRanks ranks of one host, processes or
// threads, whose GPUs reach each other's memory; ranks may share a GPU.
//
// `connect` takes memory: Layout::bytes(size) of this GPU's (80 MiB a peer with 2 ranks, 36 with
// 8), shared by descriptor with all ranks, which map it, and a line of host memory. Each way is
// proved by a pattern first.
//
// Kernels wait for kernels of the peers. They take up to 128 blocks, fewer where ranks share a GPU:
// as many as all of these run at a time. Of these the two or three of a channel, side by side, have
// to run at a time; other kernels that fill the GPU, and wait themselves for something behind
// these, stop them. A captured call may be replayed as long as the
// engine lives.
class PeerEngine final : public engine::DeviceEngine {
 public:
  // Empty: groups like this may have the engine; else why not.
  static std::string why_not(const engine::GroupFacts& facts);

  // `ranks_a_gpu`: the most that share one, which leave each other room; the same on all ranks.
  PeerEngine(std::shared_ptr<const cuda::DeviceContext> device,
             const engine::GroupFacts& facts,
             const PeerTuning& tuning,
             int ranks_a_gpu);
  // Aborts, and waits for this GPU's work, though not for ever.
  ~PeerEngine() override;

  std::string_view name() const noexcept override { return "peer"; }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override;
  void connect(const engine::Introduction& introduction) override;
  void enqueue(const engine::Call& call, StreamRef stream) override;
  std::unique_ptr<engine::DeviceSteps> steps_of(const engine::Call& call, PeerOuts outs) override;
  bool has_messages() const noexcept override { return true; }
  void exchange(std::span<const engine::DeviceMessage> messages, StreamRef stream) override;
  bool meets_on_device() const noexcept override { return size_ > 1; }
  bool keeps_time(Duration allowed, std::uint64_t sequence) noexcept override;
  std::optional<engine::DeviceWait> waits() noexcept override;
  std::optional<engine::DeviceProblem> problem() noexcept override;
  void abort() noexcept override;
  bool aborts_gently() const noexcept override { return true; }

 private:
  class Steps;
  void allocate();
  void write_patterns(base::Deadline deadline);
  void read_patterns(base::Deadline deadline);
  bool has_nvlink(const engine::Introduction& introduction) const;
  // Runs `stage` on every rank; throws on all where it threw on one.
  template <typename Stage>
  void together(const engine::Introduction& introduction, const Stage& stage);
  HostWords& words() const noexcept { return *reinterpret_cast<HostWords*>(words_->data()); }
  void limit(Duration allowed) noexcept;
  void launch(std::span<Step> steps, cuda::Stream stream) const;

  std::shared_ptr<const cuda::DeviceContext> device_;
  PeerTuning tuning_;
  int rank_;
  int size_;
  int ranks_a_gpu_;
  Duration allowed_ = kForever;
  std::uint32_t next_ = 0;  // of what comes next, see engine::DeviceWait
  // Empty until connected.
  std::byte* staging_[kMaxRanks] = {};
  Member member_;
  std::shared_ptr<cuda::HostBuffer> words_;
  std::unique_ptr<PeerKernels> kernels_;
  std::uint64_t limits_ = 0;  // how often calls have got another time
  std::vector<cuda::Mapping> mappings_;  // the own one first
};

}  // namespace hocket::engines::peer
