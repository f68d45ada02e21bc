#include "engines/shm/provider.h"

#include "engines/shm/shm_engine.h"
#include "engines/shm/shm_point_to_point.h"

namespace hocket::engines::shm {
namespace {

// Returns the position of the channels in a group's memory. The memory of the collectives comes
// first. The channels of the messages follow and begin at a page.
std::size_t channels_offset(int members) {
  constexpr std::size_t kPage = 4096;
  return (ShmEngine::bytes(members) + kPage - 1) / kPage * kPage;
}

}  // namespace

engine::Use ShmProvider::use(engine::Ranks ranks) const noexcept {
  return ranks == engine::Ranks::kThreads ? engine::Use::kWhenAsked : engine::Use::kByDefault;
}

std::uint64_t ShmProvider::tuning() const noexcept { return ShmEngine::tuning(); }

std::optional<Engine> ShmProvider::probe(const Machine&) const {
  return Engine{std::string(name()), true, "ranks on one host, host memory"};
}

std::size_t ShmProvider::group_bytes(int members) const noexcept {
  return channels_offset(members) + ShmPointToPoint::bytes(members);
}

std::unique_ptr<engine::PointToPoint> ShmProvider::make_messages(const engine::GroupSite& site) {
  return std::make_unique<ShmPointToPoint>(*site.control,
                                           site.memory + channels_offset(site.facts.size));
}

std::unique_ptr<engine::CollectiveEngine> ShmProvider::make_collectives(
    const engine::GroupSite& site) {
  if (!site.facts.one_host) return nullptr;
  return std::make_unique<ShmEngine>(*site.control, *site.consistency, site.memory, site.facts);
}

}  // namespace hocket::engines::shm
