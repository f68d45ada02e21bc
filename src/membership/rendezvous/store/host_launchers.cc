#include "membership/rendezvous/store/host_launchers.h"

namespace hocket::rendezvous {

std::vector<HostLaunchers::Loss> HostLaunchers::left(std::uint64_t connection, Manner manner) {
  const auto found = launchers_.find(connection);
  if (found == launchers_.end()) return {};
  const Launcher launcher = found->second;
  launchers_.erase(found);
  if (manner == Manner::kLost) lost_.push_back(launcher.host);
  const auto started = ranks_.find(launcher.host);
  if (launcher.size == 0 || started == ranks_.end()) return {};
  std::vector<Loss> losses;
  const auto& [first, count, size] = started->second;
  for (int rank = first; rank < first + count; ++rank) {
    if (came_.contains(rank)) continue;
    losses.push_back({.rank = rank,
                      .size = size,
                      .how = manner == Manner::kLost
                                 ? "lost its launcher, which was killed or cut off,"
                                 : "had a launcher that ended"});
  }
  return losses;
}

}  // namespace hocket::rendezvous
