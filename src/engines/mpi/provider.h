// The provider of the engine `mpi`: MPI's communicators for hocket's groups.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/provider.h"
#include "engines/movement/use_of_gpus.h"
#include "engines/mpi/groups.h"
#include "engines/mpi/library.h"

namespace hocket::engines::mpi {

// See engine::Provider. `join` starts MPI. MPI's messages ring no doorbell, so a waiting thread
// must poll.
class MpiProvider final : public engine::Provider {
 public:
  std::string_view name() const noexcept override { return kName; }
  engine::Use use(engine::Ranks ranks) const noexcept override;
  bool serves(MemoryKind) const noexcept override { return true; }
  std::span<const base::SettingRow> settings() const noexcept override;
  void configure() override;  // reads HOCKET_MPI_GPUS
  std::optional<Engine> probe(const Machine& machine) const override;

  bool introduces() const noexcept override { return true; }
  std::vector<std::byte> join(const engine::JobSite& site) override;
  void meet(const std::vector<std::vector<std::byte>>& cards) override;
  // After this call MPI can neither make communicators nor be finalized.
  void forsake() noexcept override;

  bool has_collectives() const noexcept override { return true; }
  // Makes an MPI communicator for the group. Collective among the group's members. Returns null if
  // the job has lost ranks.
  std::unique_ptr<engine::CollectiveEngine> make_collectives(
      const engine::GroupSite& site) override;

  void close(std::uint64_t group, const std::shared_ptr<void>& hold) noexcept override {
    groups_.close(group, hold);
  }
  void end() noexcept override { groups_.end(); }

  engine::DeviceCard device_card(const cuda::DeviceContext& device) override;
  std::string why_no_device_engine(const engine::DeviceSite& site) const override;
  std::unique_ptr<engine::DeviceEngine> make_device_engine(const engine::DeviceSite& site) override;

 private:
  movement::UseGpus gpus_ = movement::UseGpus::kNever;
  int own_ = 0;             // this rank in hocket's world
  std::string card_;        // the text that this rank gave to all ranks; see card_of
  std::vector<int> ranks_;  // ranks in MPI's world, by rank in hocket's world
  std::shared_ptr<MpiLibrary> library_;
  std::shared_ptr<Comm> everybody_;  // MPI's world
  Groups groups_;
};

}  // namespace hocket::engines::mpi
