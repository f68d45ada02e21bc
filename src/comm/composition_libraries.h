// The composition root's part for libraries that are found when the program runs: the driver and
// NCCL for GPUs, UCX for messages between hosts. composition.h has the functions that make them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/composition.h"
#include "engines/nccl/library.h"
#include "engines/ucx/device_fabrics.h"

namespace hocket::comm {

// Looks once for each, in whichever thread asks first.
class FoundLibraries final : public DeviceLibraries {
 public:
  explicit FoundLibraries(DeviceSettings settings) : settings_(std::move(settings)) {}

  const cuda::Found& driver() override;
  const engines::nccl::Found& nccl();
  int nccl_version(std::string& why_not) override;
  std::shared_ptr<nvshmem::Heap> nvshmem(std::string& why_not) override;
  const engine::CostTable& costs() override;

 private:
  DeviceSettings settings_;
  std::once_flag driver_once_;
  std::once_flag nccl_once_;
  std::once_flag costs_once_;
  cuda::Found driver_;
  engines::nccl::Found nccl_;
  engine::CostTable costs_;
};

// UCX's end in this process, for messages between hosts.
class UcxCarriage final : public Carriage {
 public:
  UcxCarriage(std::shared_ptr<const engines::ucx::Library> library,
              const CarriageSettings& settings);

  Bytes address() const override { return fabric_->address(); }
  void meet(std::vector<Bytes> addresses) override { fabric_->meet(std::move(addresses)); }
  std::string why_unreachable(int rank) override { return fabric_->why_unreachable(rank); }
  void attach(control::HostControl* host,
              control::Network* network,
              std::vector<int> places) override;
  control::Carrier carrier() override;
  bool flush(base::Deadline deadline) noexcept override {
    const bool done = fabric_->flush(deadline);
    return gpu_fabrics_.flush(deadline) && done;
  }
  void retire() noexcept override;

  const std::shared_ptr<engines::ucx::Fabric>& fabric() const noexcept { return fabric_; }
  // Others, for arrays in GPUs' memory.
  engines::ucx::DeviceFabrics& gpu_fabrics() noexcept { return gpu_fabrics_; }
  UseGpus gpus() const noexcept { return gpus_; }

 private:
  engines::ucx::FabricOptions options_of(const CarriageSettings& settings);
  std::shared_ptr<engines::ucx::Fabric> make_gpu_fabric(
      const engines::ucx::DeviceFabrics::Device& device);
  control::RankState state_of(int rank) const noexcept;

  std::vector<int> places_;  // written before `host_`
  std::atomic<control::HostControl*> host_{nullptr};
  std::atomic<control::Network*> network_{nullptr};
  const std::shared_ptr<const engines::ucx::Library> library_;
  const std::string interface_;
  const UseGpus gpus_;
  std::shared_ptr<engines::ucx::Fabric> fabric_;
  engines::ucx::DeviceFabrics gpu_fabrics_;
};

}  // namespace hocket::comm
