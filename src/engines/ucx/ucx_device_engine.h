// Collectives on GPUs' memory by UCX: see movement::MovingEngine.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engines/movement/moving_engine.h"
#include "engines/ucx/device_fabrics.h"
#include "engines/ucx/ucx_point_to_point.h"
#include "foundation/os/wakeup.h"

namespace hocket::engines::ucx {

// Options of the engine. A value.
struct UcxDeviceOptions {
  std::shared_ptr<DeviceFabrics> fabrics;
  Members members;
  std::size_t world = 0;  // number of ranks in the world
  // Carry collectives even if UCX itself moves them through the host.
  bool always = false;
  // Returns whether the user wants the waiting thread to stop.
  std::function<bool()> interrupted;
};

// See movement::MovingEngine. It owns a thread, which makes progress between calls.
class UcxDeviceEngine final : public movement::MovingEngine {
 public:
  UcxDeviceEngine(std::shared_ptr<const cuda::DeviceContext> device, UcxDeviceOptions options);
  ~UcxDeviceEngine() override;

  std::string_view name() const noexcept override { return "ucx"; }

 private:
  void agree(const engine::Introduction& introduction) override;
  void prepare() override;
  std::string meet(const engine::Introduction& introduction) override;
  std::unique_ptr<engine::PointToPoint> make_messages(
      const std::shared_ptr<movement::Slots>& slots) override;
  void begin() override;
  bool is_broken(int peer) noexcept override;
  void answer() noexcept;

  const UcxDeviceOptions options_;
  int number_ = 0;  // the number of fabric_; see DeviceFabrics
  std::shared_ptr<Fabric> fabric_;
  std::vector<std::byte> address_;

  // The thread that makes progress between calls, because peers may wait for answers of this rank.
  std::atomic<bool> closed_{false};
  os::Wakeup wakeup_;
  std::thread answering_;
};

}  // namespace hocket::engines::ucx
