#include "engines/mpi/mpi_device_engine.h"

#include <fmt/format.h>

#include <utility>

#include "hocket/error.h"

namespace hocket::engines::mpi {
namespace {

movement::Mover mover_of(const MpiDeviceOptions& options) {
  return {.library = options.comm->library().name(),
          .rank = options.rank,
          .size = options.size,
          .always = options.always,
          .interrupted = options.interrupted};
}

}  // namespace

MpiDeviceEngine::MpiDeviceEngine(std::shared_ptr<const cuda::DeviceContext> device,
                                 MpiDeviceOptions options)
    : MovingEngine(std::move(device), mover_of(options)), options_(std::move(options)) {}

// Requires that MPI supports GPUs' memory. An MPI without this support would take the address of
// GPU memory for a host address, and crash the process.
void MpiDeviceEngine::prepare() {
  MpiLibrary::sweep();
  MpiLibrary& library = options_.comm->library();
  const Gpus says = library.gpus();
  if (says == Gpus::kSaysNothing && !options_.always) {
    throw DeviceError(
        fmt::format("{} does not say whether it knows CUDA's memory; HOCKET_MPI_GPUS=always takes "
                    "it for granted",
                    library.name()));
  }
  if (says == Gpus::kSaysNo && !(options_.always && cuda::is_reached_by_host(device()))) {
    throw DeviceError(fmt::format("{} says that it does not know CUDA's memory", library.name()));
  }
  library.use(device());
}

std::unique_ptr<engine::PointToPoint> MpiDeviceEngine::make_messages(
    const std::shared_ptr<movement::Slots>& slots) {
  auto messages = std::make_unique<MpiMessages>(options_.comm, options_.size, slots);
  messages_ = messages.get();
  return messages;
}

bool MpiDeviceEngine::is_broken(int /*peer*/) noexcept { return messages_->is_broken(); }

}  // namespace hocket::engines::mpi
