// The provider of the engine `shm`: messages and collectives between ranks of one host.
#pragma once

#include <memory>

#include "engine/provider.h"

namespace hocket::engines::shm {

// See engine::Provider.
class ShmProvider final : public engine::Provider {
 public:
  std::string_view name() const noexcept override { return "shm"; }
  engine::Use use(engine::Ranks ranks) const noexcept override;
  std::uint64_t tuning() const noexcept override;
  std::optional<Engine> probe(const Machine& machine) const override;

  engine::Distance reach() const noexcept override { return engine::Distance::kHost; }
  std::size_t group_bytes(int members) const noexcept override;
  std::unique_ptr<engine::PointToPoint> make_messages(const engine::GroupSite& site) override;
  bool has_collectives() const noexcept override { return true; }
  std::unique_ptr<engine::CollectiveEngine> make_collectives(
      const engine::GroupSite& site) override;
};

}  // namespace hocket::engines::shm
