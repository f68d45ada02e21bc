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

// Who forces messages to travel directly means shorter ones, too.
constexpr std::size_t kForcedFrom = 64 * 1024;

}  // namespace

const cuda::Found& FoundLibraries::driver() {
  std::call_once(driver_once_, [this] { driver_ = cuda::Driver::find(); });
  return driver_;
}

const engines::nccl::Found& FoundLibraries::nccl() {
  std::call_once(nccl_once_, [this] {
    nccl_ = engines::nccl::Library::find({.file = settings_.nccl_library,
                                          .folders = settings_.folders,
                                          .multicast = settings_.multicast,
                                          .ras = settings_.ras});
  });
  return nccl_;
}

int FoundLibraries::nccl_version(std::string& why_not) {
  why_not = nccl().why_not;
  return nccl().library ? nccl().library->version() : 0;
}

const engine::CostTable& FoundLibraries::costs() {
  std::call_once(costs_once_, [this] {
    costs_ = settings_.costs.empty() ? engine::CostTable::shipped() : read_costs(settings_.costs);
  });
  return costs_;
}

UcxCarriage::UcxCarriage(std::shared_ptr<const engines::ucx::Library> library,
                         const CarriageSettings& settings)
    : fabric_(std::make_shared<engines::ucx::Fabric>(std::move(library), options_of(settings))) {}

engines::ucx::FabricOptions UcxCarriage::options_of(const CarriageSettings& settings) {
  engines::ucx::FabricOptions options{.interface = settings.interface};
  options.wake = [this] {
    if (auto* host = host_.load()) host->ring(host->self());
  };
  options.help = [this] {
    if (auto* network = network_.load()) network->notify();
  };
  options.lost = [this](int rank) {
    const auto* host = host_.load();
    return host != nullptr &&
           host->state(places_[static_cast<std::size_t>(rank)]) > control::RankState::kAlive;
  };
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
          .take_broken = [fabric = fabric_] { return fabric->take_broken(); }};
}

std::shared_ptr<DeviceLibraries> make_device_libraries(DeviceSettings settings) {
  return std::make_shared<FoundLibraries>(std::move(settings));
}

std::shared_ptr<Carriage> make_carriage(const CarriageSettings& settings) {
  const auto found = engines::ucx::Library::find();
  if (!found.library) {
    throw RendezvousError("messages between hosts need UCX, and " + found.why_not);
  }
  return std::make_shared<UcxCarriage>(found.library, settings);
}

}  // namespace hocket::comm
