#include "engines/peer/provider.h"

#include <algorithm>

#include "engines/peer/peer_engine.h"
#include "engines/peer/shipped_costs.h"
#include "foundation/cuda/context.h"
#include "foundation/cuda/usable.h"

namespace hocket::engines::peer {
namespace {

// The facts that each rank gives to all ranks before the engine is made.
struct PeerCard {
  std::int32_t shareable = 0;  // 1: other processes can map the memory of this rank's GPU
};

// Limits of HOCKET_PEER_BLOCKS. Every call needs at least the blocks of one channel.
constexpr long long kLeastBlocks = 3;
constexpr long long kMostBlocks = 1024;

constexpr base::SettingRow kSettings[]{
    {"HOCKET_PEER_BLOCKS",
     "the most blocks of a kernel of the engine peer, 3 to 1024: fewer leave multiprocessors to a "
     "program's own kernels; each rank says its number, and the smallest holds"},
};

}  // namespace

std::span<const base::SettingRow> PeerProvider::settings() const noexcept { return kSettings; }

void PeerProvider::configure() {
  most_blocks_ = static_cast<std::uint32_t>(
      base::environment_integer(kSettings[0].name, kLeastBlocks, kMostBlocks).value_or(0));
}

std::string_view PeerProvider::shipped_costs() const noexcept { return kShippedCosts; }

std::optional<Engine> PeerProvider::probe(const Machine& machine) const {
  const std::string why_not = cuda::why_no_gpu(machine);
  return Engine{std::string(name()),
                why_not.empty(),
                why_not.empty() ? "GPUs of one host, GPU memory, by kernels of our own" : why_not};
}

engine::DeviceCard PeerProvider::device_card(const cuda::DeviceContext& device) {
  const bool shareable = device.attribute(cuda::DeviceAttribute::kVmm) != 0 &&
                         device.attribute(cuda::DeviceAttribute::kPosixFdHandles) != 0;
  return engine::DeviceCard::of(PeerCard{.shareable = shareable ? 1 : 0});
}

std::string PeerProvider::why_no_device_engine(const engine::DeviceSite& site) const {
  const bool shareable = std::ranges::all_of(site.cards, [](const engine::DeviceCard& card) {
    return card.as<PeerCard>().shareable != 0;
  });
  if (!shareable && site.facts.size > 1) return "a GPU's memory cannot be shared";
  return PeerEngine::why_not(site.facts);
}

std::unique_ptr<engine::DeviceEngine> PeerProvider::make_device_engine(
    const engine::DeviceSite& site) {
  PeerTuning tuning = default_tuning(site.facts.size);
  if (most_blocks_ != 0) tuning = with_room(tuning, most_blocks_);
  return std::make_unique<PeerEngine>(site.device, site.facts, tuning, site.ranks_a_gpu);
}

}  // namespace hocket::engines::peer
