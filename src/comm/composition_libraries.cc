#include "comm/composition_libraries.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "hocket/error.h"

namespace hocket::comm {
namespace {

engine::CostTable read_costs(const std::string& file) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) throw InvalidArgument(fmt::format("HOCKET_COSTS={}: cannot be read", file));
  try {
    return engine::CostTable::parse(text);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("HOCKET_COSTS={}: {}", file, error.what()));
  }
}

// NVSHMEM is one a process, and so is what is known of it, whatever worlds come and go. Null: it
// has not been found so far, and why.
std::shared_ptr<nvshmem::Heap> nvshmem_of_process(const os::LibrarySearch& search,
                                                  bool multicast,
                                                  std::string& why_not) {
  // Threads that NVSHMEM keeps may outlive the process's globals.
  static std::mutex& mutex = *new std::mutex;
  static auto& heap = *new std::shared_ptr<nvshmem::Heap>;
  const std::lock_guard lock(mutex);
  if (!heap) {
    const nvshmem::Found found = nvshmem::Library::find(search);
    why_not = found.why_not;
    if (found.library) heap = std::make_shared<nvshmem::Heap>(found.library, multicast);
  }
  return heap;
}

// Who forces messages to travel directly means shorter ones, too.
constexpr std::size_t kForcedFrom = 64 * 1024;

}  // namespace

UseGpus use_of_gpus(const std::string& setting) {
  return setting == "always" ? UseGpus::kAlways
         : setting == "auto" ? UseGpus::kAuto
                             : UseGpus::kNever;
}

const cuda::Found& FoundLibraries::driver() {
  std::call_once(driver_once_, [this] { driver_ = cuda::Driver::find(); });
  return driver_;
}

const engines::nccl::Found& FoundLibraries::nccl() {
  std::call_once(nccl_once_, [this] {
    nccl_ =
        engines::nccl::Library::find({.file = settings_.nccl_library, .folders = settings_.folders},
                                     {.multicast = settings_.multicast, .ras = settings_.ras});
  });
  return nccl_;
}

int FoundLibraries::nccl_version(std::string& why_not) {
  why_not = nccl().why_not;
  return nccl().library ? nccl().library->version() : 0;
}

std::shared_ptr<nvshmem::Heap> FoundLibraries::nvshmem(std::string& why_not) {
  return nvshmem_of_process({.file = settings_.nvshmem_library, .folders = settings_.folders},
                            settings_.multicast,
                            why_not);
}

const engine::CostTable& FoundLibraries::costs() {
  std::call_once(costs_once_, [this] {
    costs_ = settings_.costs.empty() ? engine::CostTable::shipped() : read_costs(settings_.costs);
  });
  return costs_;
}

UcxCarriage::UcxCarriage(std::shared_ptr<const engines::ucx::Library> library,
                         const CarriageSettings& settings)
    : library_(std::move(library)),
      interface_(settings.interface),
      gpus_(use_of_gpus(settings.gpus)),
      fabric_(std::make_shared<engines::ucx::Fabric>(library_, options_of(settings))),
      gpu_fabrics_([this](const auto& device) { return make_gpu_fabric(device); }) {}

std::shared_ptr<engines::ucx::Fabric> UcxCarriage::make_gpu_fabric(
    const engines::ucx::DeviceFabrics::Device& device) {
  engines::ucx::FabricOptions options{.interface = interface_};
  options.lost = [this](int rank) { return state_of(rank) > control::RankState::kAlive; };
  options.died = [this](int rank) { return state_of(rank) > control::RankState::kLeft; };
  options.gpus = true;
  options.device = device;
  return std::make_shared<engines::ucx::Fabric>(library_, std::move(options));
}

void UcxCarriage::retire() noexcept {
  fabric_->retire();
  gpu_fabrics_.retire();
}

control::RankState UcxCarriage::state_of(int rank) const noexcept {
  const auto* host = host_.load();
  return host == nullptr ? control::RankState::kAlive
                         : host->state(places_[static_cast<std::size_t>(rank)]);
}

engines::ucx::FabricOptions UcxCarriage::options_of(const CarriageSettings& settings) {
  engines::ucx::FabricOptions options{.interface = settings.interface};
  options.wake = [this] {
    if (auto* host = host_.load()) host->ring(host->self());
  };
  options.help = [this] {
    if (auto* network = network_.load()) network->notify();
  };
  options.lost = [this](int rank) { return state_of(rank) > control::RankState::kAlive; };
  options.died = [this](int rank) { return state_of(rank) == control::RankState::kDied; };
  if (settings.bulk == "pieces") options.bulk = engines::ucx::Bulk::kPieces;
  if (settings.bulk == "direct") {
    options.bulk = engines::ucx::Bulk::kDirect;
    options.direct_from = kForcedFrom;
  }
  return options;
}

void UcxCarriage::attach(control::HostControl* host,
                         control::Network* network,
                         std::vector<int> places) {
  places_ = std::move(places);
  host_ = host;
  network_ = network;
}

control::Carrier UcxCarriage::carrier() {
  return {.event_fd = fabric_->event_fd(),
          .arm = [fabric = fabric_] { return fabric->arm(); },
          .pending = [fabric = fabric_] { return fabric->pending(); },
          .progress = [fabric = fabric_] { return fabric->progress(); },
          .take_broken = [fabric = fabric_] { return fabric->take_broken(); },
          .give_up = [fabric = fabric_] { return fabric->try_retire(); }};
}

std::shared_ptr<DeviceLibraries> make_device_libraries(DeviceSettings settings) {
  return std::make_shared<FoundLibraries>(std::move(settings));
}

UcxFacts look_at_ucx(const base::Config& config) {
  const auto found = engines::ucx::Library::find({.file = config.ucx_library});
  if (!found.library) return {.why_not = found.why_not};
  try {
    const engines::ucx::Fabric fabric(found.library, {.gpus = true});
    return {.version = found.library->version(), .knows_gpus = fabric.knows_gpus()};
  } catch (const Error& error) {
    return {.why_not = error.what()};
  }
}

std::shared_ptr<Carriage> make_carriage(const CarriageSettings& settings) {
  const auto found =
      engines::ucx::Library::find({.file = settings.library, .folders = settings.folders});
  if (!found.library) {
    throw RendezvousError("messages between hosts need UCX, and " + found.why_not);
  }
  return std::make_shared<UcxCarriage>(found.library, settings);
}

}  // namespace hocket::comm
