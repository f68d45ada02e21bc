#include "membership/control/host/liveness.h"

#include <fmt/format.h>
#include <unistd.h>

#include "foundation/os/process/process_exit.h"
#include "hocket/error.h"

namespace hocket::control {
namespace {

// RankLine::end is 0 while the end is unknown. Afterwards it is this bit, and the status of
// waitpid.
constexpr std::int32_t kEndKnown = 1 << 16;

}  // namespace

void Liveness::arrive(int world_rank) {
  RankLine& line = lines_[self_];
  line.pid.store(static_cast<std::int32_t>(getpid()), std::memory_order_relaxed);
  line.thread.store(static_cast<std::int32_t>(::gettid()), std::memory_order_relaxed);
  line.start.store(os::process_start(0), std::memory_order_relaxed);
  line.pid_space.store(os::process_space(), std::memory_order_relaxed);
  line.world_rank.store(world_rank, std::memory_order_relaxed);
  auto expected = RankState::kAbsent;
  if (!line.state.compare_exchange_strong(expected, RankState::kAlive, std::memory_order_acq_rel)) {
    throw RendezvousError(fmt::format("the seat of host rank {} is taken already", self_));
  }
  doorbells_.ring_all();
  doorbells_.ring_network();
}

void Liveness::leave() noexcept { become(self_, RankState::kLeft); }
void Liveness::record_death(int rank) noexcept { become(rank, RankState::kDied); }

// Rings also if another rank has already recorded the end: that rank may have died before it rang.
void Liveness::become(int rank, RankState ended) noexcept {
  std::int64_t never = 0;
  lines_[rank].death_seen.compare_exchange_strong(never, now_ns(), std::memory_order_relaxed);
  auto expected = RankState::kAlive;
  if (lines_[rank].state.compare_exchange_strong(expected, ended, std::memory_order_acq_rel)) {
    count_loss();
  }
  doorbells_.ring_all();
  doorbells_.ring_network();
}

void Liveness::look_for_deaths() noexcept {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank != self_ && robust_word(rank, self_).owner_died() &&
        state(rank) == RankState::kAlive) {
      record_death(rank);
    }
  }
}

void Liveness::look_for_core_dump(int rank) noexcept {
  if (!is_here(rank) || state(rank) != RankState::kAlive || pid(rank) == pid(self_)) return;
  const auto status = os::dumps_core_by(pid(rank), start(rank));
  if (!status) return;
  if (*status != 0) record_end(rank, *status);
  record_death(rank);
}

void Liveness::record_end(int rank, int status) noexcept {
  lines_[rank].end.store(kEndKnown | (status & 0xffff), std::memory_order_release);
  doorbells_.ring_network();
}

std::optional<int> Liveness::end(int rank) const noexcept {
  const std::int32_t end = lines_[rank].end.load(std::memory_order_acquire);
  if (end == 0) return std::nullopt;
  return end & 0xffff;
}

std::uint64_t Liveness::start(int rank) const noexcept {
  const RankLine& line = lines_[rank];
  // A pid is valid only in its pid namespace. Here the number may belong to another process, or to
  // none.
  const auto space = line.pid_space.load(std::memory_order_relaxed);
  const bool is_seen =
      space != 0 && space == lines_[self_].pid_space.load(std::memory_order_relaxed);
  return is_seen ? line.start.load(std::memory_order_relaxed) : 0;
}

std::chrono::nanoseconds Liveness::since_death(int rank) const noexcept {
  return std::chrono::nanoseconds(now_ns() -
                                  lines_[rank].death_seen.load(std::memory_order_relaxed));
}

}  // namespace hocket::control
