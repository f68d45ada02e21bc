// Collectives between the processes of one host through shared memory.
#pragma once

#include "engine/engine.h"
#include "engines/shm/shm_group.h"

namespace hocket::engines::shm {

// See engine::CollectiveEngine. Supports all kinds that it has code for, on host memory, in groups
// within one host.
class ShmEngine final : public engine::CollectiveEngine {
 public:
  // `memory` is ShmGroup::bytes(size) of zeros in the host's segment, which the group shares.
  ShmEngine(control::GroupControl& control,
            engine::Consistency& consistency,
            std::byte* memory,
            const engine::GroupFacts& facts)
      : group_(control, consistency, memory, facts) {}

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

  ShmGroup group_;
};

}  // namespace hocket::engines::shm
