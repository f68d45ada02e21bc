// Collectives and messages between GPUs of one host, by hocket's own kernels.
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

// See engine::DeviceEngine. Carries everything for up to kMaxRanks ranks of one host. Ranks are
// processes or threads, and may share a GPU. The GPUs must reach each other's memory.
//
// `connect` allocates Layout::bytes(size) of this GPU's memory: 80 MiB for each peer with 2 ranks,
// 36 with 8. It shares this memory by descriptor with all ranks, which map it. It also allocates a
// line of host memory. A test pattern checks each direction first.
//
// Kernels wait for kernels of their peers. They have up to 128 blocks, and fewer if ranks share a
// GPU, so that all these blocks can run at the same time. At least the two or three blocks of a
// channel must run at the same time. A deadlock is possible if another kernel fills the GPU and
// itself waits for work behind these kernels. A captured call may be replayed as long as the engine
// lives.
class PeerEngine final : public engine::DeviceEngine {
 public:
  // Returns "" if such a group may have the engine, else the reason.
  static std::string why_not(const engine::GroupFacts& facts);

  // `ranks_a_gpu` is the largest number of ranks that share a GPU. It limits their blocks and is
  // equal on all ranks.
  PeerEngine(std::shared_ptr<const cuda::DeviceContext> device,
             const engine::GroupFacts& facts,
             const PeerTuning& tuning,
             int ranks_a_gpu);
  // Aborts, and waits a limited time for this GPU's work.
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
  // Runs `stage` on every rank. Throws on all ranks if it throws on one.
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
  std::uint32_t next_ = 0;  // number of the next call, see engine::DeviceWait
  // The members below are empty until the engine is connected.
  std::byte* staging_[kMaxRanks] = {};
  Member member_;
  std::shared_ptr<cuda::HostBuffer> words_;
  std::unique_ptr<PeerKernels> kernels_;
  std::uint64_t limits_ = 0;             // how often the time limit of calls has changed
  std::vector<cuda::Mapping> mappings_;  // this rank's own mapping is first
};

}  // namespace hocket::engines::peer
