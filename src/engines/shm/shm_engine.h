// Collectives between the processes of one host through shared memory.
#pragma once

#include "engine/engine.h"
#include "engines/shm/collectives.h"
#include "engines/shm/shm_group.h"

namespace hocket::engines::shm {

// See engine::CollectiveEngine. Carries calls on host memory in groups within one host; `score`
// tells which ones.
class ShmEngine final : public engine::CollectiveEngine {
 public:
  static std::size_t bytes(int size, const ManyRanks& many = {}) {
    return ShmGroup::bytes(size, size >= many.seconds_ranks);
  }
  // `memory` is a block of `bytes(size, many)` zero bytes in the host's segment. All ranks of the
  // group share the block.
  ShmEngine(control::GroupControl& control,
            engine::Consistency& consistency,
            std::byte* memory,
            const engine::GroupFacts& facts,
            const ManyRanks& many = {})
      : many_(many),
        group_(control, consistency, memory, facts, facts.size >= many.seconds_ranks) {}

  // Returns a hash of the settings that must be equal on all ranks of a group.
  static std::uint64_t tuning() noexcept;

  std::string_view name() const noexcept override { return "shm"; }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override;
  engine::Task start(const engine::Call& call) override;
  bool compares() const noexcept override { return true; }
  bool attempt(const engine::Call& call) override;
  void skip(std::uint64_t sequence) override { group_.finish(sequence); }

 private:
  engine::Task start_symmetric(const engine::Call& call);
  bool is_small(const engine::Signature& signature) const noexcept;
  SmallWay way_of(const engine::Signature& signature) const noexcept {
    return group_.is_crowded() ? SmallWay::kAtOnce : small_way_of(signature, group_.size(), many_);
  }

  const ManyRanks many_;
  ShmGroup group_;
};

}  // namespace hocket::engines::shm
