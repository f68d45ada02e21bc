// The provider of the engine `ucx`: messages between hosts, and collectives on GPUs' arrays over
// them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/provider.h"
#include "engines/ucx/ucx_carrier.h"

namespace hocket::engines::ucx {

// The settings HOCKET_UCX_LIBRARY, HOCKET_UCX_BULK and HOCKET_UCX_GPUS. A value.
struct UcxSettings {
  std::string library;  // path of the file; empty: search for it
  Bulk bulk = Bulk::kAuto;
  movement::UseGpus gpus = movement::UseGpus::kNever;

  static UcxSettings from_environment();
};

// See engine::Provider. `join` loads and starts UCX.
class UcxProvider final : public engine::Provider {
 public:
  // `folders` are the library folders of Python packages.
  explicit UcxProvider(std::vector<std::string> folders);

  std::string_view name() const noexcept override { return "ucx"; }
  engine::Use use(engine::Ranks ranks) const noexcept override;
  bool serves(MemoryKind) const noexcept override { return true; }
  std::span<const base::SettingRow> settings() const noexcept override;
  void configure() override { settings_ = UcxSettings::from_environment(); }
  std::optional<Engine> probe(const Machine& machine) const override;

  bool introduces() const noexcept override { return true; }
  std::vector<std::byte> join(const engine::JobSite& site) override;
  void meet(const std::vector<std::vector<std::byte>>& cards) override;
  std::shared_ptr<engine::Carrier> carrier() override { return carrier_; }

  engine::Distance reach() const noexcept override { return engine::Distance::kHosts; }
  std::unique_ptr<engine::PointToPoint> make_messages(const engine::GroupSite& site) override;

  engine::DeviceCard device_card(const cuda::DeviceContext& device) override;
  std::string why_no_device_engine(const engine::DeviceSite& site) const override;
  std::unique_ptr<engine::DeviceEngine> make_device_engine(const engine::DeviceSite& site) override;

 private:
  UcxSettings settings_;
  const std::vector<std::string> folders_;
  std::shared_ptr<UcxCarrier> carrier_;  // null until joined
};

}  // namespace hocket::engines::ucx
