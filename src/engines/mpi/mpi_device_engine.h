// Arrays in GPUs' memory by an MPI that knows it: see movement::MovingEngine.
#pragma once

#include <functional>
#include <memory>

#include "engines/movement/moving_engine.h"
#include "engines/mpi/mpi_messages.h"

namespace hocket::engines::mpi {

// A value.
struct MpiDeviceOptions {
  std::shared_ptr<Comm> comm;  // of the group, in which only collectives were called so far
  int rank = 0;
  int size = 1;
  // Also where MPI does not say that it knows GPUs' memory, and for collectives of any size.
  bool always = false;
  // Whether the user wants the waiting thread to stop.
  std::function<bool()> interrupted;
};

// Reductions are others': those of MPI that do not block are made by the host, and Open MPI 4.1's
// end in a segmentation fault there. MPI is called while a call waits, and by nobody in between.
class MpiDeviceEngine final : public movement::MovingEngine {
 public:
  MpiDeviceEngine(std::shared_ptr<const cuda::DeviceContext> device, MpiDeviceOptions options);

  std::string_view name() const noexcept override { return kName; }

 private:
  void prepare() override;
  std::string meet(const engine::Introduction&) override { return {}; }  // MPI has done so
  std::unique_ptr<engine::PointToPoint> make_messages(
      const std::shared_ptr<movement::Slots>& slots) override;
  bool is_broken(int peer) noexcept override;

  const MpiDeviceOptions options_;
  const MpiMessages* messages_ = nullptr;
};

}  // namespace hocket::engines::mpi
