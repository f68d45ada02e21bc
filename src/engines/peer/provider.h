// The provider of the engine `peer`: GPUs of one host, by hocket's own kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/provider.h"

namespace hocket::engines::peer {

// See engine::Provider.
class PeerProvider final : public engine::Provider {
 public:
  std::string_view name() const noexcept override { return "peer"; }
  engine::Use use(engine::Ranks) const noexcept override { return engine::Use::kByDefault; }
  std::string_view shipped_costs() const noexcept override;
  std::span<const base::SettingRow> settings() const noexcept override;
  void configure() override;
  bool serves(MemoryKind memory) const noexcept override { return memory == MemoryKind::kCuda; }
  std::optional<Engine> probe(const Machine& machine) const override;

  engine::DeviceCard device_card(const cuda::DeviceContext& device) override;
  std::string why_no_device_engine(const engine::DeviceSite& site) const override;
  std::unique_ptr<engine::DeviceEngine> make_device_engine(const engine::DeviceSite& site) override;

 private:
  std::uint32_t most_blocks_ = 0;  // maximum blocks of a kernel; 0: the tuning's maximum
};

}  // namespace hocket::engines::peer
