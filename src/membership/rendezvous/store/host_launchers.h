// Tracks the launchers among a store's clients, and the ranks that they start. The connection of a
// rank that has come shows its own loss. A rank that has not come yet is lost when its launcher is.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hocket::rendezvous {

// The ranks of one host: `count` of the job's `size` ranks, from `first` on. A value.
struct LauncherRanks {
  int first = 0;
  int count = 0;
  int size = 0;
};

// A launcher, as it has introduced itself. A value.
struct Launcher {
  int host = 0;
  int size = 0;  // the job's size; 0: not known yet, so it has started no rank
};

// A resource. One thread at a time uses it.
class HostLaunchers {
 public:
  enum class Manner : std::uint8_t { kSaidGoodbye, kLost };
  struct Loss {
    int rank, size;
    std::string how;  // "had a launcher that ended"
  };

  void starts(int host, LauncherRanks ranks) { ranks_[host] = ranks; }
  void rank_came(int rank) { came_.insert(rank); }
  void came(std::uint64_t connection, Launcher launcher) {
    launchers_.insert_or_assign(connection, launcher);
  }
  // Records that a client has left. If it is a launcher, returns its ranks that have not come, and
  // therefore will not come.
  std::vector<Loss> left(std::uint64_t connection, Manner manner);
  // Returns the hosts whose launchers were lost, in the order of the losses.
  const std::vector<int>& lost() const noexcept { return lost_; }

 private:
  std::map<std::uint64_t, Launcher> launchers_;
  std::map<int, LauncherRanks> ranks_;  // by host number
  std::set<int> came_;
  std::vector<int> lost_;
};

}  // namespace hocket::rendezvous
