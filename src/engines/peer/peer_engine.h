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

// See engine::DeviceEngine. Carries all common collectives and messages for up to kMaxRanks ranks
// of one host. Ranks are processes or threads, and may share a GPU. The GPUs must be able to access
// each other's memory.
//
// `connect` allocates Layout::bytes(size) bytes of this GPU's memory. This is 80 MiB for each peer
// in a group of 2 ranks, and 36 MiB for each peer in a group of 8. It shares this memory with all
// ranks by a file descriptor, and the other ranks map it. It also allocates one cache line of host
// memory. Each pair of ranks writes and checks a test pattern in both directions.
//
// The kernels of a rank wait for the kernels of its peers. A kernel has up to 128 blocks, and fewer
// if ranks share a GPU, so that all its blocks can run at the same time. At least the two or three
// blocks of a channel must run at the same time. A deadlock is possible if another kernel fills the
// GPU and itself waits for work behind these kernels. A captured call may be replayed as long as
// the engine lives.
class PeerEngine final : public engine::DeviceEngine {
 public:
  // Returns "" if such a group may use this engine, otherwise the reason why not.
  static std::string why_not(const engine::GroupFacts& facts);

  // `ranks_a_gpu` is the largest number of ranks that share one GPU, equal on all ranks. It limits
  // the blocks of each kernel.
  PeerEngine(std::shared_ptr<const cuda::DeviceContext> device,
             const engine::GroupFacts& facts,
             const PeerTuning& tuning,
             int ranks_a_gpu);
  // Aborts the running kernels. Releases the memory when this GPU has finished its work, and waits
  // at most ten seconds for that.
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
  // Runs `stage` on every rank. If it throws on one rank, this throws on all ranks.
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
  std::uint32_t next_ = 0;  // number of the next call; see engine::DeviceWait
  // The members below are empty until the engine is connected.
  std::byte* staging_[kMaxRanks] = {};
  Member member_;
  std::shared_ptr<cuda::HostBuffer> words_;
  std::unique_ptr<PeerKernels> kernels_;
  std::uint64_t limits_ = 0;             // how often the time limit of calls has changed
  std::vector<cuda::Mapping> mappings_;  // the staging areas; this rank's own area is first
};

}  // namespace hocket::engines::peer
