#include "engines/ucx/provider.h"

#include <fmt/format.h>

#include <utility>

#include "engines/ucx/ucx_device_engine.h"
#include "engines/ucx/ucx_point_to_point.h"
#include "foundation/base/config.h"
#include "foundation/cuda/usable.h"
#include "foundation/os/machine/probe.h"
#include "foundation/os/sockets/addresses.h"
#include "hocket/error.h"

namespace hocket::engines::ucx {
namespace {

using movement::UseGpus;

constexpr const char* kLibraryVariable = "HOCKET_UCX_LIBRARY";
constexpr const char* kBulkVariable = "HOCKET_UCX_BULK";
constexpr const char* kGpusVariable = "HOCKET_UCX_GPUS";

constexpr base::SettingRow kRows[]{
    {kBulkVariable,
     "Long messages by UCX: auto (default), pieces (copied), direct (from array to array)"},
    {kGpusVariable,
     "GPUs' arrays by UCX: never (default), auto (where it needs no host memory), always"},
    {kLibraryVariable, "UCX's file; default: in the process, the system's, Python's package"},
};

// Starts UCX, which may crash or hang. Returns "VERSION\n1" if UCX supports GPUs' memory, and
// "VERSION\n0" if it does not. Returns "\n" and the reason if UCX cannot be used.
std::string about_ucx() {
  try {
    const UcxSettings settings = UcxSettings::from_environment();
    const auto found = UcxLibrary::find({.file = settings.library, .folders = {}});
    if (!found.library) return "\n" + found.why_not;
    const Fabric fabric(found.library, {.gpus = true});
    return found.library->version() + "\n" + (fabric.knows_gpus() ? "1" : "0");
  } catch (const Error& error) {
    return std::string("\n") + error.what();
  }
}

}  // namespace

UcxSettings UcxSettings::from_environment() {
  return {.library = base::environment(kLibraryVariable).value_or(""),
          .bulk = static_cast<Bulk>(
              base::environment_word(kBulkVariable, {"auto", "pieces", "direct"})),
          .gpus = movement::use_of_gpus(kGpusVariable)};
}

UcxProvider::UcxProvider(std::vector<std::string> folders) : folders_(std::move(folders)) {}

engine::Use UcxProvider::use(engine::Ranks ranks) const noexcept {
  switch (ranks) {
    case engine::Ranks::kThreads:
      return engine::Use::kNever;
    case engine::Ranks::kProcesses:
      return engine::Use::kWhenAsked;
    case engine::Ranks::kHosts:
      break;
  }
  return engine::Use::kByDefault;
}

std::span<const base::SettingRow> UcxProvider::settings() const noexcept { return kRows; }

// The note also names the interface by which other hosts would reach this host.
std::optional<Engine> UcxProvider::probe(const Machine& machine) const {
  Engine ucx{.name = std::string(name()), .available = false, .note = {}};
  const auto found = os::run_in_child(about_ucx, 15000);
  const std::size_t line = found ? found->find('\n') : 0;
  if (!found || line == 0) {
    ucx.note = found ? found->substr(1) : "UCX crashed or hung when it was started";
    return ucx;
  }
  const auto chosen = base::environment("HOCKET_INTERFACE");
  const auto interface = chosen ? os::find_interface(*chosen) : std::nullopt;
  if (chosen && !interface) {
    ucx.note = fmt::format("HOCKET_INTERFACE={} is no interface that is up", *chosen);
    return ucx;
  }
  ucx.available = true;
  const bool knows_gpus = found->back() == '1';
  const bool has_gpus = cuda::why_no_gpu(machine).empty();
  ucx.note = fmt::format(
      "ranks on several hosts, {}, UCX {}, by {}",
      knows_gpus ? "host and GPU memory"
      : has_gpus ? "host memory (not GPUs': built without CUDA; see HOCKET_UCX_LIBRARY)"
                 : "host memory",
      found->substr(0, line),
      interface ? fmt::format("{} ({})", interface->name, interface->address)
                : std::string("the interface on the way to the store (HOCKET_INTERFACE)"));
  return ucx;
}

std::vector<std::byte> UcxProvider::join(const engine::JobSite& site) {
  const auto found = UcxLibrary::find({.file = settings_.library, .folders = folders_});
  if (!found.library) {
    throw RendezvousError("messages between hosts need UCX, and " + found.why_not);
  }
  carrier_ = std::make_shared<UcxCarrier>(
      found.library,
      ListenOptions{
          .interface = site.interface, .is_chosen = site.is_interface_chosen, .ports = site.ports},
      settings_.bulk);
  return carrier_->fabric()->address();
}

void UcxProvider::meet(const std::vector<std::vector<std::byte>>& cards) {
  if (carrier_) carrier_->fabric()->meet(cards);
}

std::unique_ptr<engine::PointToPoint> UcxProvider::make_messages(const engine::GroupSite& site) {
  return std::make_unique<UcxPointToPoint>(
      carrier_->fabric(),
      Members{.group = site.id,
              .rank = site.facts.rank,
              .world_ranks = {site.world_ranks.begin(), site.world_ranks.end()}});
}

engine::DeviceCard UcxProvider::device_card(const cuda::DeviceContext&) {
  return engine::DeviceCard::of(settings_.gpus);
}

std::string UcxProvider::why_no_device_engine(const engine::DeviceSite& site) const {
  if (!carrier_ || site.world_size == 1) return "no rank needs it";
  if (movement::agreed_use(site.cards) != UseGpus::kNever) return {};
  return fmt::format("{}=never", kGpusVariable);
}

std::unique_ptr<engine::DeviceEngine> UcxProvider::make_device_engine(
    const engine::DeviceSite& site) {
  Members members{.group = ~site.id,  // not the number for the group's messages in host memory
                  .rank = site.facts.rank,
                  .world_ranks = {site.world_ranks.begin(), site.world_ranks.end()},
                  .memory = MemoryKind::kCuda};
  return std::make_unique<UcxDeviceEngine>(
      site.device,
      UcxDeviceOptions{.fabrics = {carrier_, &carrier_->gpu_fabrics()},
                       .members = std::move(members),
                       .world = static_cast<std::size_t>(site.world_size),
                       .always = movement::agreed_use(site.cards) == UseGpus::kAlways,
                       .interrupted = site.interrupted});
}

}  // namespace hocket::engines::ucx
