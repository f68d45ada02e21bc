// The facts that hosts tell each other about their ranks.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "membership/control/host/doorbells.h"
#include "membership/control/host/end_reasons.h"
#include "membership/control/host/liveness.h"
#include "membership/control/host/view.h"

namespace hocket::control {

// A fact about a rank, which its host tells other hosts. A value.
struct RankFact {
  int world_rank = -1;
  RankState state = RankState::kAbsent;
  int pid = 0;
  std::optional<int> end = {};  // the status of waitpid
  std::optional<EndReason> reason = {};
};

// The ranks of other hosts, as one rank of this host records and reads them. A view of the segment,
// with this process's private names of the hosts. Any thread.
class RemoteHosts : public HostView {
 public:
  RemoteHosts(const HostView& view,
              Doorbells& doorbells,
              Liveness& liveness,
              EndReasons& end_reasons) noexcept
      : HostView(view), doorbells_(doorbells), liveness_(liveness), end_reasons_(end_reasons) {}

  // Sets the host number of each place. All ranks of the job number the hosts in the same way.
  // Every rank of this host calls it, before it hears of other hosts.
  void set_hosts(std::span<const int> hosts) noexcept;
  // Returns the number of the host of the rank at `place`; -1 if there is only one host.
  int host_of(int place) const noexcept {
    return lines_[place].host.load(std::memory_order_relaxed);
  }
  // Sets the machine and address of the rank at each place, as a text for people: "on node3
  // (10.0.0.3:29501)". Each process has its private copy. Empty for this host's ranks, and in jobs
  // of one host.
  void set_whereabouts(std::vector<std::string> whereabouts) {
    whereabouts_ = std::move(whereabouts);
  }
  std::string_view whereabouts(int place) const noexcept {
    const auto at = static_cast<std::size_t>(place);
    return at < whereabouts_.size() ? std::string_view(whereabouts_[at]) : std::string_view();
  }

  // Records a fact about the rank at `place` that another host has sent, and wakes all ranks. Only
  // the network's thread calls it.
  void record(int place, const RankFact& fact) noexcept;
  // Records that world rank `from`, on this host, can no longer exchange messages with the rank at
  // `place`. The rank that speaks for this host then tells the other host.
  void record_cut(int place, int from) noexcept;
  // Returns the rank that has called `record_cut` for `place`. Absent: none has.
  std::optional<int> cut_from(int place) const noexcept;
  // Returns the fact about the rank at `place`. The fact has the reason of its end only if the rank
  // has ended, because the reason counts only then.
  RankFact describe(int place) const noexcept;
  // Set and read RankLine::seen_at. Absent: not seen yet.
  void note_seen(int place) noexcept;
  std::optional<std::chrono::nanoseconds> since_seen(int place) const noexcept;

 private:
  Doorbells& doorbells_;
  Liveness& liveness_;
  EndReasons& end_reasons_;
  std::vector<std::string> whereabouts_;  // by place
};

}  // namespace hocket::control
