// The provider of the engine `nccl`.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/provider.h"
#include "engines/nccl/library.h"

namespace hocket::engines::nccl {

// The settings HOCKET_NCCL_LIBRARY, HOCKET_NVLINK_MULTICAST and HOCKET_NCCL_RAS. A value.
struct NcclSettings {
  std::string library;  // path of the file; empty: search for it
  Allowed allowed;

  static NcclSettings from_environment();
};

// See engine::Provider. NCCL is loaded at the first use.
class NcclProvider final : public engine::Provider {
 public:
  // `folders` are the library folders of Python packages.
  explicit NcclProvider(std::vector<std::string> folders);

  std::string_view name() const noexcept override { return "nccl"; }
  engine::Use use(engine::Ranks) const noexcept override { return engine::Use::kByDefault; }
  std::string_view shipped_costs() const noexcept override;
  bool serves(MemoryKind memory) const noexcept override { return memory == MemoryKind::kCuda; }
  std::span<const base::SettingRow> settings() const noexcept override;
  void configure() override { settings_ = NcclSettings::from_environment(); }
  std::optional<Engine> probe(const Machine& machine) const override;

  engine::DeviceCard device_card(const cuda::DeviceContext& device) override;
  std::string why_no_device_engine(const engine::DeviceSite& site) const override;
  std::unique_ptr<engine::DeviceEngine> make_device_engine(const engine::DeviceSite& site) override;

 private:
  const FoundNccl& found();

  NcclSettings settings_;
  const std::vector<std::string> folders_;
  std::once_flag once_;
  FoundNccl found_;
};

}  // namespace hocket::engines::nccl
