#include "membership/control/host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <vector>

#include "foundation/base/deadline.h"
#include "foundation/base/interrupt.h"
#include "foundation/os/process/process_exit.h"
#include "foundation/os/process/scheduling.h"
#include "hocket/error.h"
#include "membership/control/host_layout.h"
#include "membership/control/kept_facts.h"

namespace hocket::control {
namespace {

// A rank that was cut off lives on, so more may become of it.
bool may_become(RankState before, RankState after) noexcept {
  if (before == RankState::kCut) return after > RankState::kAlive && after != RankState::kCut;
  return before <= RankState::kAlive && after > before;
}

// RankLine::end: 0 while unknown; else this, and waitpid's status.
constexpr std::int32_t kEndKnown = 1 << 16;

std::int64_t now_ns() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

HostHeader& header_of(const os::Segment& segment) {
  return *reinterpret_cast<HostHeader*>(segment.data());
}

}  // namespace

std::size_t HostControl::segment_bytes(const HostShape& shape) {
  if (shape.ranks > kMostRanks) {
    throw InvalidArgument(fmt::format(
        "there are {} ranks on one host, expected {} at most", shape.ranks, kMostRanks));
  }
  return stripes_offset(shape) + static_cast<std::size_t>(shape.ranks) * shape.stripe_bytes;
}

void HostControl::format(os::Segment& segment, const HostShape& shape) {
  auto& header = *new (segment.data()) HostHeader;
  header.ranks = static_cast<std::uint32_t>(shape.ranks);
  header.remote = static_cast<std::uint32_t>(shape.remote);
  header.stripe_bytes = shape.stripe_bytes;
  // The rest of the segment is zero, the initial value of lines and words.
  for (int i = 0; i < shape.ranks + shape.remote; ++i) {
    new (segment.data() + lines_offset() + sizeof(RankLine) * static_cast<std::size_t>(i)) RankLine;
  }
  header.magic.store(kMagic, std::memory_order_release);
}

HostControl::HostControl(std::shared_ptr<os::Segment> segment, int self)
    : segment_(std::move(segment)), self_(self) {
  HostHeader& header = header_of(*segment_);
  if (segment_->size() < sizeof(HostHeader) ||
      header.magic.load(std::memory_order_acquire) != kMagic) {
    throw RendezvousError(
        "the job's shared memory was made by another version of hocket; use the same one on all "
        "ranks");
  }
  const HostShape shape{.ranks = static_cast<int>(header.ranks),
                        .remote = static_cast<int>(header.remote),
                        .stripe_bytes = header.stripe_bytes};
  ranks_ = shape.ranks;
  places_ = shape.ranks + shape.remote;
  stripe_bytes_ = shape.stripe_bytes;
  if (self < 0 || self >= ranks_ || segment_bytes(shape) > segment_->size()) {
    throw RendezvousError(
        fmt::format("host rank {} has no seat in a segment of {} ranks", self, ranks_));
  }
  lines_ = reinterpret_cast<RankLine*>(segment_->data() + lines_offset());
  reasons_ = reinterpret_cast<SharedEndReason*>(segment_->data() + reasons_offset(shape));
  losses_ = &header.losses;
  network_bell_ = &header.network_bell;
  robust_ = reinterpret_cast<os::RobustWord*>(segment_->data() + robust_offset(shape));
  if (shape.remote != 0) {
    groups_ = reinterpret_cast<GroupEntry*>(segment_->data() + groups_offset(shape));
    std::byte* kept_facts = segment_->data() + kept_facts_offset(shape);
    farewells_ = reinterpret_cast<KeptFacts*>(kept_facts);
    forerunners_ = reinterpret_cast<KeptFacts*>(kept_facts + pages(sizeof(KeptFacts), 1));
    gone_groups_ = reinterpret_cast<GoneGroups*>(kept_facts + 2 * pages(sizeof(KeptFacts), 1));
  }
  stripe_offset_ = stripes_offset(shape) + static_cast<std::size_t>(self) * stripe_bytes_;
  free_.push_back({stripe_offset_, stripe_bytes_});
  fenced_ = os::register_for_heavy_fence() && os::heavy_fence();
}

void HostControl::arrive(int world_rank) {
  RankLine& line = lines_[self_];
  line.pid.store(static_cast<std::int32_t>(getpid()), std::memory_order_relaxed);
  line.thread.store(static_cast<std::int32_t>(::gettid()), std::memory_order_relaxed);
  line.start.store(os::process_start(0), std::memory_order_relaxed);
  line.pid_space.store(os::process_space(), std::memory_order_relaxed);
  line.fenced.store(fenced_ ? 1 : 0, std::memory_order_relaxed);
  offer_proof();
  line.world_rank.store(world_rank, std::memory_order_relaxed);
  auto expected = RankState::kAbsent;
  if (!line.state.compare_exchange_strong(expected, RankState::kAlive, std::memory_order_acq_rel)) {
    throw RendezvousError(fmt::format("the seat of host rank {} is taken already", self_));
  }
  ring_all();
  ring_network();
}

HostControl::~HostControl() = default;

void HostControl::wait_for_all(std::span<const int> world_ranks, base::Deadline deadline) {
  const auto present = [this] {
    return std::all_of(lines_, lines_ + places_, [](const RankLine& line) {
      return line.state.load(std::memory_order_acquire) != RankState::kAbsent;
    });
  };
  while (!present()) {
    const auto ticket = before_sleep();
    if (!present()) sleep(ticket, deadline);
    after_sleep();
    try {
      base::throw_if_interrupted("the wait for all ranks of this host");
    } catch (const RendezvousError&) {
      if (!present()) throw;  // else the rank that ended did so after all had arrived
    }
    if (present() || !deadline.has_passed()) continue;
    std::vector<int> missing;
    for (int i = 0; i < places_; ++i) {
      if (state(i) == RankState::kAbsent)
        missing.push_back(world_ranks[static_cast<std::size_t>(i)]);
    }
    throw RendezvousError(fmt::format(
        "{} {} met the others at the store but did not come to their host's shared memory in "
        "time; see their output",
        missing.size() == 1 ? "rank" : "ranks",
        fmt::join(missing, ", ")));
  }
  // A rank without membarrier might miss a wake-up.
  all_fenced_.store(std::all_of(lines_,
                                lines_ + ranks_,
                                [](const RankLine& line) {
                                  return line.fenced.load(std::memory_order_relaxed) != 0;
                                }),
                    std::memory_order_relaxed);
}

bool HostControl::shares_processor(Asks who) noexcept {
  const int here = sched_getcpu();
  if (here < 0) return false;
  const bool calls = who == Asks::kCaller;
  auto& own = lines_[self_].running_on;
  // Stores only changes, so that the line stays in all caches.
  if (calls && own.load(std::memory_order_relaxed) != here) {
    own.store(here, std::memory_order_relaxed);
  }
  bool shares = false;
  for (int i = 0; i < ranks_; ++i) {
    auto& there = lines_[i].running_on;
    if ((calls && i == self_) || there.load(std::memory_order_relaxed) != here) continue;
    shares = true;
    // A rank that is still here writes its processor again. If it has moved and never waits, this
    // keeps it from being taken to be here forever.
    if (calls) there.store(-1, std::memory_order_relaxed);
  }
  if (!shares || !calls || !may_spin_ || !move_away(here)) return shares;
  own.store(sched_getcpu(), std::memory_order_relaxed);
  return false;
}

// The kernel leaves two ranks that spin on one processor there, though another is idle.
bool HostControl::move_away(int here) noexcept {
  const std::int64_t now = steady_ns();
  if (now < moves_again_at_) return false;
  moves_again_at_ = now + kMovePause.count();
  try {
    std::vector<int> taken{here};
    for (int i = 0; i < ranks_; ++i) {
      const int there = lines_[i].running_on.load(std::memory_order_relaxed);
      if (i != self_ && there >= 0) taken.push_back(there);
    }
    return os::leave_processors(taken, static_cast<std::size_t>(self_));
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void HostControl::publish_world(std::uint64_t offset) noexcept {
  header_of(*segment_).world.store(offset, std::memory_order_release);
}

std::uint64_t HostControl::published_world() const noexcept {
  return header_of(*segment_).world.load(std::memory_order_acquire);
}

void HostControl::ring_parked(int peer) noexcept {
  lines_[peer].doorbell.fetch_add(1, std::memory_order_release);
  os::futex_wake_all(lines_[peer].doorbell);
}

void HostControl::ring_all() noexcept {
  base::thread_fence(std::memory_order_seq_cst);
  for (int i = 0; i < ranks_; ++i) {
    if (lines_[i].parked.load(std::memory_order_relaxed) != 0) ring_parked(i);
  }
}

std::uint32_t HostControl::before_sleep() noexcept {
  RankLine& line = lines_[self_];
  const auto ticket = line.doorbell.load(std::memory_order_acquire);
  line.parked.fetch_add(1, std::memory_order_seq_cst);
  // From here on, either a thread that stores the awaited data sees `parked`, or its store is seen
  // here.
  if (fenced_) os::heavy_fence();
  return ticket;
}

void HostControl::sleep(std::uint32_t ticket,
                        base::Deadline deadline,
                        std::span<const os::FutexWait> more) noexcept {
  // Without heavy fences a ring can be missed; then sleep in short stretches.
  const bool fenced = all_fenced_.load(std::memory_order_relaxed);
  const auto longest = !fenced   ? std::chrono::milliseconds(1)
                       : arming_ ? std::chrono::milliseconds(10)
                                 : std::chrono::milliseconds(100);
  deadline = std::min(deadline, base::Deadline::in(longest));
  if (arming_ && !arming_()) return;
  os::FutexWord& doorbell = lines_[self_].doorbell;
  if (more.empty()) {
    os::futex_wait(doorbell, ticket, deadline);
    return;
  }
  std::array<os::FutexWait, os::kMaxFutexWaits + 1> waits;
  waits[0] = {&doorbell, ticket};
  const std::size_t count = std::min(more.size(), os::kMaxFutexWaits);
  std::copy_n(more.begin(), count, waits.begin() + 1);
  os::futex_wait_any(std::span(waits).first(count + 1), deadline);
}

void HostControl::after_sleep() noexcept {
  lines_[self_].parked.fetch_sub(1, std::memory_order_relaxed);
}

void HostControl::leave() noexcept {
  std::int64_t never = 0;
  lines_[self_].death_seen.compare_exchange_strong(never, now_ns(), std::memory_order_relaxed);
  auto expected = RankState::kAlive;
  if (lines_[self_].state.compare_exchange_strong(
          expected, RankState::kLeft, std::memory_order_acq_rel)) {
    header_of(*segment_).losses.fetch_add(1, std::memory_order_acq_rel);
    ring_all();
    ring_network();
  }
}

void HostControl::tell_end_reason(Ending ending, std::string_view text) noexcept {
  reasons_[self_].write(ending, text);
}

void HostControl::withdraw_end_reason() noexcept {
  if (ending(self_) != Ending::kInOrder) reasons_[self_].write(Ending::kInOrder, "");
}

HostControl::Ending HostControl::ending(int place) const noexcept {
  const Ending said = reasons_[place].ending.load(std::memory_order_relaxed);
  return said == Ending::kInOrder || said == Ending::kAfterALoss ? said : Ending::kByItself;
}

std::optional<EndReason> HostControl::end_reason(int place) const { return reasons_[place].read(); }

void HostControl::record_death(int rank) noexcept {
  std::int64_t never = 0;
  lines_[rank].death_seen.compare_exchange_strong(never, now_ns(), std::memory_order_relaxed);
  auto expected = RankState::kAlive;
  if (lines_[rank].state.compare_exchange_strong(
          expected, RankState::kDied, std::memory_order_acq_rel)) {
    header_of(*segment_).losses.fetch_add(1, std::memory_order_acq_rel);
  }
  ring_all();
  ring_network();
}

void HostControl::look_for_deaths() noexcept {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank != self_ && robust_word(rank, self_).owner_died() &&
        state(rank) == RankState::kAlive) {
      record_death(rank);
    }
  }
}

void HostControl::look_for_core_dump(int rank) noexcept {
  if (!is_here(rank) || state(rank) != RankState::kAlive || pid(rank) == pid(self_)) return;
  const auto status = os::dumps_core_by(pid(rank), start(rank));
  if (!status) return;
  if (*status != 0) record_end(rank, *status);
  record_death(rank);
}

void HostControl::record_end(int rank, int status) noexcept {
  lines_[rank].end.store(kEndKnown | (status & 0xffff), std::memory_order_release);
  ring_network();
}

std::optional<int> HostControl::end(int rank) const noexcept {
  const std::int32_t end = lines_[rank].end.load(std::memory_order_acquire);
  if (end == 0) return std::nullopt;
  return end & 0xffff;
}

std::uint64_t HostControl::start(int rank) const noexcept {
  const RankLine& line = lines_[rank];
  // A pid of another pid namespace belongs to a different process here, or to none.
  const auto space = line.pid_space.load(std::memory_order_relaxed);
  const bool is_seen =
      space != 0 && space == lines_[self_].pid_space.load(std::memory_order_relaxed);
  return is_seen ? line.start.load(std::memory_order_relaxed) : 0;
}

std::chrono::nanoseconds HostControl::since_death(int rank) const noexcept {
  return std::chrono::nanoseconds(now_ns() -
                                  lines_[rank].death_seen.load(std::memory_order_relaxed));
}

// --- Other hosts --------------------------------------------------------------------------------

void HostControl::set_hosts(std::span<const int> hosts) noexcept {
  for (int place = 0; place < places_; ++place) {
    lines_[place].host.store(hosts[static_cast<std::size_t>(place)], std::memory_order_relaxed);
  }
}

void HostControl::record_remote(int place, const Remote& remote) noexcept {
  RankLine& line = lines_[place];
  line.pid.store(remote.pid, std::memory_order_relaxed);
  line.world_rank.store(remote.world_rank, std::memory_order_relaxed);
  if (remote.end) record_end(place, *remote.end);
  if (remote.reason && ending(place) == Ending::kInOrder) {
    reasons_[place].write(remote.reason->follows_loss ? Ending::kAfterALoss : Ending::kByItself,
                          remote.reason->text);
  }
  // States come in order, but may come again.
  RankState before = line.state.load(std::memory_order_acquire);
  while (may_become(before, remote.state)) {
    if (remote.state > RankState::kAlive) {
      std::int64_t never = 0;
      line.death_seen.compare_exchange_strong(never, now_ns(), std::memory_order_relaxed);
    }
    if (!line.state.compare_exchange_weak(before, remote.state, std::memory_order_acq_rel))
      continue;
    if (remote.state > RankState::kAlive) {
      header_of(*segment_).losses.fetch_add(1, std::memory_order_acq_rel);
    }
    break;
  }
  ring_all();
}

void HostControl::record_cut(int place, int from) noexcept {
  RankLine& line = lines_[place];
  std::int32_t nobody = -1;
  line.cut_from.compare_exchange_strong(nobody, from, std::memory_order_relaxed);
  record_remote(place,
                {.state = RankState::kCut,
                 .pid = pid(place),
                 .world_rank = line.world_rank.load(std::memory_order_relaxed),
                 .end = std::nullopt,
                 .reason = std::nullopt});
  ring_network();
}

std::optional<int> HostControl::cut_from(int place) const noexcept {
  if (state(place) != RankState::kCut) return std::nullopt;  // pairs with record_remote
  const std::int32_t from = lines_[place].cut_from.load(std::memory_order_relaxed);
  return from >= 0 ? std::optional(from) : std::nullopt;
}

HostControl::Remote HostControl::describe(int place) const noexcept {
  return {.state = state(place),
          .pid = pid(place),
          .world_rank = lines_[place].world_rank.load(std::memory_order_relaxed),
          .end = end(place),
          .reason = end_reason(place)};
}

void HostControl::note_seen(int place) noexcept {
  lines_[place].seen_at.store(now_ns(), std::memory_order_relaxed);
}

std::optional<std::chrono::nanoseconds> HostControl::since_seen(int place) const noexcept {
  const std::int64_t at = lines_[place].seen_at.load(std::memory_order_relaxed);
  if (at == 0) return std::nullopt;
  return std::chrono::nanoseconds(now_ns() - at);
}

void HostControl::ring_network() noexcept {
  if (groups_ == nullptr) return;
  network_bell_->fetch_add(1, std::memory_order_acq_rel);
  os::futex_wake_all(*network_bell_);
}

}  // namespace hocket::control
