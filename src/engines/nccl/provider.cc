#include "engines/nccl/provider.h"

#include <fmt/format.h>

#include "engines/nccl/nccl_engine.h"
#include "engines/nccl/shipped_costs.h"
#include "foundation/base/config.h"
#include "foundation/base/short_text.h"
#include "foundation/cuda/usable.h"

namespace hocket::engines::nccl {
namespace {

constexpr const char* kLibraryVariable = "HOCKET_NCCL_LIBRARY";
constexpr const char* kRasVariable = "HOCKET_NCCL_RAS";

constexpr base::SettingRow kRows[]{
    {kLibraryVariable, "NCCL's file; default: in the process, Python's package, the system's"},
    {kRasVariable, "1: NCCL may open its monitoring port; default 0"},
};

// The facts that each rank gives to all ranks before the engine is made.
struct NcclCard {
  std::int32_t version = 0;  // 0: this rank has no NCCL, for the reason in `why_not`
  base::ShortSentence<160> why_not;
};

// Returns "" if all ranks have the same version of NCCL, otherwise the reason why not.
std::string why_not_alike(std::span<const engine::DeviceCard> cards) {
  if (cards.empty()) return "no rank has said that it has it";
  const auto first = cards.front().as<NcclCard>().version;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const NcclCard card = cards[i].as<NcclCard>();
    if (card.version == 0) return fmt::format("rank {}: {}", i, card.why_not.view());
    if (card.version != first) {
      return fmt::format("rank 0 has version {} and rank {} version {}", first, i, card.version);
    }
  }
  return {};
}

}  // namespace

NcclSettings NcclSettings::from_environment() {
  return {.library = base::environment(kLibraryVariable).value_or(""),
          .allowed = {.multicast = base::environment_switch(base::kMulticastVariable),
                      .ras = base::environment_switch(kRasVariable)}};
}

NcclProvider::NcclProvider(std::vector<std::string> folders) : folders_(std::move(folders)) {}

std::span<const base::SettingRow> NcclProvider::settings() const noexcept { return kRows; }

std::string_view NcclProvider::shipped_costs() const noexcept { return kShippedCosts; }

std::optional<Engine> NcclProvider::probe(const Machine& machine) const {
  std::string why_not = cuda::why_no_gpu(machine);
  if (why_not.empty() && !cuda::has_library(machine, "NCCL")) why_not = "there is no NCCL";
  return Engine{
      std::string(name()), why_not.empty(), why_not.empty() ? "a GPU a rank, GPU memory" : why_not};
}

const FoundNccl& NcclProvider::found() {
  std::call_once(once_, [this] {
    found_ = NcclLibrary::find({.file = settings_.library, .folders = folders_}, settings_.allowed);
  });
  return found_;
}

engine::DeviceCard NcclProvider::device_card(const cuda::DeviceContext&) {
  NcclCard card{.version = found().library ? found().library->version() : 0, .why_not = {}};
  card.why_not = found().why_not;
  return engine::DeviceCard::of(card);
}

std::string NcclProvider::why_no_device_engine(const engine::DeviceSite& site) const {
  if (site.facts.size == 1 && !site.is_only) return "one rank needs no other";
  const std::string why_not = why_not_alike(site.cards);
  if (why_not.empty() && site.shares_gpu) return "two ranks use one GPU, which NCCL refuses";
  return why_not;
}

std::unique_ptr<engine::DeviceEngine> NcclProvider::make_device_engine(
    const engine::DeviceSite& site) {
  return std::make_unique<NcclEngine>(found().library, site.device, site.facts);
}

}  // namespace hocket::engines::nccl
