#include "engines/local/provider.h"

namespace hocket::engines::local {

engine::Use LocalProvider::use(engine::Ranks ranks) const noexcept {
  return ranks == engine::Ranks::kThreads ? engine::Use::kByDefault : engine::Use::kNever;
}

std::optional<Engine> LocalProvider::probe(const Machine&) const {
  return Engine{std::string(name()), true, "ranks that are threads of one process"};
}

std::unique_ptr<engine::PointToPoint> LocalProvider::make_messages(const engine::GroupSite& site) {
  const std::lock_guard lock(mutex_);
  std::erase_if(fabrics_, [](const auto& entry) { return entry.second.expired(); });
  auto& entry = fabrics_[site.block];
  auto fabric = entry.lock();
  if (!fabric) entry = fabric = std::make_shared<LocalFabric>(site.facts.size);
  return std::make_unique<LocalPointToPoint>(std::move(fabric), site.facts.rank, site.ring);
}

}  // namespace hocket::engines::local
