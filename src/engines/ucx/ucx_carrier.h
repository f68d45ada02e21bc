// This process's use of UCX for messages between hosts.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/carrier.h"
#include "engines/movement/use_of_gpus.h"
#include "engines/ucx/device_fabrics.h"

namespace hocket::engines::ucx {

// See engine::Carrier.
class UcxCarrier final : public engine::Carrier {
 public:
  // Throws SystemError if UCX does not start.
  UcxCarrier(std::shared_ptr<const UcxLibrary> library, ListenOptions listening, Bulk bulk);

  const std::shared_ptr<Fabric>& fabric() const noexcept { return fabric_; }
  // The separate fabrics for arrays in GPUs' memory.
  DeviceFabrics& gpu_fabrics() noexcept { return gpu_fabrics_; }

  void attach(engine::CarrierLinks links) override;
  void try_ways(int own_rank, const std::vector<int>& ranks) override {
    fabric_->try_ways(own_rank, ranks);
  }
  bool are_ways_tried() override { return fabric_->are_ways_tried(); }
  engine::ClosedWay why_unreachable(int rank) override;
  int event_fd() const noexcept override { return fabric_->event_fd(); }
  bool arm() noexcept override { return fabric_->arm(); }
  bool progress() noexcept override { return fabric_->progress(); }
  bool pending() const noexcept override { return fabric_->pending(); }
  std::vector<int> take_broken() override { return fabric_->take_broken(); }
  bool flush(base::Deadline deadline) noexcept override;
  void retire() noexcept override;
  bool try_retire() noexcept override { return fabric_->try_retire(); }

 private:
  FabricOptions options(Bulk bulk) const;
  std::shared_ptr<Fabric> make_gpu_fabric(const DeviceFabrics::Device& device) const;
  engine::Fate fate(int rank) const;

  engine::CarrierLinks links_;  // written before `attached_`
  std::atomic<bool> attached_{false};
  const std::shared_ptr<const UcxLibrary> library_;
  const ListenOptions listening_;
  std::shared_ptr<Fabric> fabric_;
  DeviceFabrics gpu_fabrics_;
};

}  // namespace hocket::engines::ucx
