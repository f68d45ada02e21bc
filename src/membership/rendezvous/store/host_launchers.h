// The launchers among a store's clients, and the ranks that they start. A rank that has come speaks
// for itself: if its connection breaks, it is lost. One that has not come is as lost as its
// launcher.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hocket::rendezvous {

// Ranks of one host: `count` of `size`, from `first` on. A value.
struct LauncherRanks {
  int first = 0;
  int count = 0;
  int size = 0;
};

// A launcher as it introduced itself. A value.
struct Launcher {
  int host = 0;
  int size = 0;  // of the job; 0: it does not know yet, so it has started no rank
};

// A resource; one thread at a time.
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
  // Returns its ranks that have not come, and will not. Does nothing for another client.
  std::vector<Loss> left(std::uint64_t connection, Manner manner);
  // The hosts whose launchers were lost, in that order.
  const std::vector<int>& lost() const noexcept { return lost_; }

 private:
  std::map<std::uint64_t, Launcher> launchers_;
  std::map<int, LauncherRanks> ranks_;  // by host
  std::set<int> came_;
  std::vector<int> lost_;
};

}  // namespace hocket::rendezvous
