#include "membership/control/host/remote_hosts.h"

namespace hocket::control {
namespace {

// Returns whether a rank's state may change from `before` to `after`. A rank that was cut off still
// lives, so its end may follow.
bool may_become(RankState before, RankState after) noexcept {
  if (before == RankState::kCut) return after > RankState::kAlive && after != RankState::kCut;
  return before <= RankState::kAlive && after > before;
}

}  // namespace

void RemoteHosts::set_hosts(std::span<const int> hosts) noexcept {
  for (int place = 0; place < places_; ++place) {
    lines_[place].host.store(hosts[static_cast<std::size_t>(place)], std::memory_order_relaxed);
  }
}

void RemoteHosts::record(int place, const RankFact& fact) noexcept {
  RankLine& line = lines_[place];
  line.pid.store(fact.pid, std::memory_order_relaxed);
  line.world_rank.store(fact.world_rank, std::memory_order_relaxed);
  if (fact.end) liveness_.record_end(place, *fact.end);
  if (fact.reason) end_reasons_.record_remote(place, *fact.reason);
  // The states of a rank arrive in order, but may arrive several times.
  RankState before = line.state.load(std::memory_order_acquire);
  while (may_become(before, fact.state)) {
    if (fact.state > RankState::kAlive) {
      std::int64_t never = 0;
      line.death_seen.compare_exchange_strong(never, now_ns(), std::memory_order_relaxed);
    }
    if (!line.state.compare_exchange_weak(before, fact.state, std::memory_order_acq_rel)) continue;
    if (fact.state > RankState::kAlive) liveness_.count_loss();
    break;
  }
  doorbells_.ring_all();
}

void RemoteHosts::record_cut(int place, int from) noexcept {
  std::int32_t nobody = -1;
  lines_[place].cut_from.compare_exchange_strong(nobody, from, std::memory_order_relaxed);
  record(place,
         {.world_rank = world_rank(place), .state = RankState::kCut, .pid = liveness_.pid(place)});
  doorbells_.ring_network();
}

std::optional<int> RemoteHosts::cut_from(int place) const noexcept {
  if (liveness_.state(place) != RankState::kCut) return std::nullopt;  // pairs with `record`
  const std::int32_t from = lines_[place].cut_from.load(std::memory_order_relaxed);
  return from >= 0 ? std::optional(from) : std::nullopt;
}

RankFact RemoteHosts::describe(int place) const noexcept {
  const RankState state = liveness_.state(place);
  return {.world_rank = world_rank(place),
          .state = state,
          .pid = liveness_.pid(place),
          .end = liveness_.end(place),
          .reason = state > RankState::kAlive ? end_reasons_.of(place) : std::nullopt};
}

void RemoteHosts::note_seen(int place) noexcept {
  lines_[place].seen_at.store(now_ns(), std::memory_order_relaxed);
}

std::optional<std::chrono::nanoseconds> RemoteHosts::since_seen(int place) const noexcept {
  const std::int64_t at = lines_[place].seen_at.load(std::memory_order_relaxed);
  if (at == 0) return std::nullopt;
  return std::chrono::nanoseconds(now_ns() - at);
}

}  // namespace hocket::control
