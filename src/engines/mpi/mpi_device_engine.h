// Collectives on GPUs' memory by an MPI that supports it: see movement::MovingEngine.
#pragma once

#include <functional>
#include <memory>

#include "engines/movement/moving_engine.h"
#include "engines/mpi/mpi_messages.h"

namespace hocket::engines::mpi {

// Options of the engine. A value.
struct MpiDeviceOptions {
  std::shared_ptr<Comm> comm;  // communicator of the group, in which no other messages are sent
  int rank = 0;
  int size = 1;
  // Use MPI even if it does not confirm that it supports GPUs' memory. Also use it for collectives
  // of any size.
  bool always = false;
  // Returns whether the user wants the waiting thread to stop.
  std::function<bool()> interrupted;
};

// See movement::MovingEngine. It carries no reductions, because MPI computes nonblocking reductions
// on the host, and Open MPI 4.1 crashes in them on GPUs' memory. It calls MPI only while a call
// waits.
class MpiDeviceEngine final : public movement::MovingEngine {
 public:
  MpiDeviceEngine(std::shared_ptr<const cuda::DeviceContext> device, MpiDeviceOptions options);

  std::string_view name() const noexcept override { return kName; }

 private:
  void prepare() override;
  std::string meet(const engine::Introduction&) override { return {}; }
  std::unique_ptr<engine::PointToPoint> make_messages(
      const std::shared_ptr<movement::Slots>& slots) override;
  bool is_broken(int peer) noexcept override;

  const MpiDeviceOptions options_;
  const MpiMessages* messages_ = nullptr;
};

}  // namespace hocket::engines::mpi
