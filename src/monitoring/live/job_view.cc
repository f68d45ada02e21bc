#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "foundation/os/process/process_exit.h"
#include "foundation/os/process/process_state.h"
#include "foundation/os/segment_holders.h"
#include "hocket/error_names.h"
#include "hocket/live.h"
#include "membership/failure/texts.h"
#include "monitoring/live/blame.h"
#include "monitoring/live/board_layout.h"
#include "monitoring/live/position.h"
#include "monitoring/live/rank_process.h"
#include "monitoring/live/sampler.h"

namespace hocket {

using control::Onlooker;
using control::RankState;
using control::SeenMember;
using live::Glance;
using live::GlancedRank;
using live::ShownGroup;
using os::ProcessState;

namespace {

// Interval between two scans for the processes that map the segment. The end of a process is
// noticed after at most this time.
constexpr std::chrono::seconds kHoldersAreGood{2};

LiveState state_of(RankState state) noexcept {
  switch (state) {
    case RankState::kAbsent:
      return LiveState::kAbsent;
    case RankState::kAlive:
      return LiveState::kAlive;
    case RankState::kLeft:
      return LiveState::kLeft;
    case RankState::kDied:
      return LiveState::kDied;
    case RankState::kSilent:
    case RankState::kCut:
      break;
  }
  return LiveState::kSilent;
}

bool is_still(const ProcessState& state) noexcept {
  using Doing = ProcessState::Doing;
  return state.doing == Doing::kStopped || state.doing == Doing::kTraced ||
         state.doing == Doing::kDumping;
}

// Returns the holder of the segment with inode number `memory`, or the first holder if `memory` is
// 0. Throws InvalidArgument if there is none. `pid` is for the error's text.
const os::SegmentHolder& holder_of(const std::vector<os::SegmentHolder>& held,
                                   int pid,
                                   std::uint64_t memory = 0) {
  const auto found = std::ranges::find_if(held, [memory](const os::SegmentHolder& holder) {
    return memory == 0 || holder.memory == memory;
  });
  if (found == held.end()) {
    throw InvalidArgument(fmt::format(
        "process {} is no rank of a job of this user; `hocket top` lists the jobs there are", pid));
  }
  return *found;
}

}  // namespace

class JobView::Impl {
 public:
  explicit Impl(const os::SegmentHolder& holder)
      : memory_(holder.memory),
        is_of_threads_(holder.is_of_threads),
        view_(holder.path),
        segment_(view_.bytes()) {
    if (segment_.known() == Onlooker::Known::kNoSegment) holder_of({}, holder.pid);
    if (segment_.known() == Onlooker::Known::kOtherVersion) {
      throw InvalidArgument(fmt::format(
          "the job of process {} is of another version of hocket; use that one's", holder.pid));
    }
    bool shows = false;
    for (int place = 0; place < segment_.ranks(); ++place) {
      shows = shows || !live::is_private(segment_, place);
    }
    if (!shows) {
      throw InvalidArgument(fmt::format(
          "the job of process {} does not want to be looked at (HOCKET_TOP=0)", holder.pid));
    }
    sampler_.emplace(segment_);
    find_pids();
    sampler_->look();
  }

  void look() { sampler_->look(); }
  void begin_anew() { sampler_->begin_anew(); }

  bool lives() {
    find_pids();
    return std::ranges::any_of(pids_, [](int pid) { return pid != 0; });
  }

  LiveJob report(const LiveOptions& options) {
    if (std::chrono::steady_clock::now() - found_at_ > kHoldersAreGood) find_pids();
    const Glance& glance = sampler_->glance();
    LiveJob job{.size = segment_.places(),
                .looked_s = sampler_->looked_s(),
                .memory_bytes = view_.touched_bytes(),
                .reserved_bytes = view_.bytes().size()};
    std::vector<ProcessState> states(glance.ranks.size());
    if (options.processes) {
      for (int place = 0; place < glance.here; ++place) states[at(place)] = process_of(place);
    }
    const auto stands_still = [&](int place) { return is_still(states[at(place)]); };
    std::set<int> blamed;
    for (int place = 0; place < segment_.places(); ++place) {
      LiveRank rank = rank_of(place, states[at(place)], options);
      const int by =
          rank.state == LiveState::kAlive ? live::blamed_by(glance, place, stands_still) : -1;
      if (by >= 0) blamed.insert(rank.blocked_by = number_of(by));
      if (job.pid == 0 && rank.is_here) job.pid = rank.pid;
      job.ranks.push_back(std::move(rank));
      if (place < glance.here) add_meters(place, job.meters);
    }
    job.blamed.assign(blamed.begin(), blamed.end());
    std::ranges::sort(job.ranks, {}, &LiveRank::rank);
    return job;
  }

 private:
  static std::size_t at(int place) noexcept { return static_cast<std::size_t>(place); }

  // Finds the pids, in this process's pid namespace, of ranks that still map the segment.
  void find_pids() {
    found_at_ = std::chrono::steady_clock::now();
    pids_.assign(at(segment_.ranks()), 0);
    std::vector<os::SegmentHolder> holders = os::segment_holders();
    std::erase_if(holders, [this](const auto& holder) { return holder.memory != memory_; });
    for (int place = 0; place < segment_.ranks(); ++place) {
      const control::SeenRank rank = segment_.rank(place);
      if (rank.state != RankState::kAlive) continue;
      const os::SegmentHolder* const holder = live::find_process(rank, holders);
      if (holder != nullptr) pids_[at(place)] = holder->pid;
    }
  }

  ProcessState process_of(int place) const {
    const int pid = pids_[at(place)];
    if (pid == 0) return {};
    const std::uint64_t start = os::process_start(pid);
    if (!is_of_threads_) return os::process_state(pid, start);
    // If the rank's pid differs here, as in a container, its thread's number differs, too.
    const control::SeenRank rank = segment_.rank(place);
    return pid == rank.pid ? os::thread_state(pid, start, rank.thread) : ProcessState{};
  }

  int number_of(int place) const { return sampler_->glance().ranks[at(place)].line.world_rank; }

  LiveRank rank_of(int place, const ProcessState& state, const LiveOptions& options) const {
    const Glance& glance = sampler_->glance();
    const GlancedRank& seen = glance.ranks[at(place)];
    const live::Tally& tally = sampler_->tally(place);
    const bool is_here = place < glance.here;
    LiveRank rank{.rank = seen.line.world_rank,
                  .pid = is_here ? pids_[at(place)] : 0,
                  .host = std::max(0, seen.line.host),
                  .is_here = is_here,
                  .shows = seen.shows,
                  .state = state_of(seen.line.state),
                  .stands_still = is_still(state),
                  .processor = state.processor,
                  .doing = seen.doing};
    rank.process = os::describe(state, rank.pid);
    if (is_here) rank.place = live::place_of(segment_, place);
    for (const ShownGroup& group : seen.groups) {
      rank.groups.push_back(group_of(group, options.recent == rank.rank));
    }
    if (seen.doing >= 0) {
      for (const int each : live::missing_from(glance, place)) {
        rank.groups[at(seen.doing)].missing.push_back(number_of(each));
      }
      std::ranges::sort(rank.groups[at(seen.doing)].missing);
    }
    const auto looks = static_cast<double>(std::max<std::uint64_t>(1, tally.looks));
    const double seconds = sampler_->looked_s();
    rank.since_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - tally.since).count();
    rank.inside = static_cast<double>(tally.inside) / looks;
    rank.waiting = static_cast<double>(tally.waiting) / looks;
    if (seconds > 0) {
      rank.calls_per_s = tally.calls / seconds;
      rank.bytes_per_s = tally.bytes / seconds;
    }
    return rank;
  }

  std::string call_text(const ShownGroup& group, std::uint64_t sequence) const {
    const auto record = segment_.record(group.block, group.index, sequence);
    if (!record) return fmt::format("#{}", sequence);
    return failure::describe(sequence, record->signature) + (record->refused ? " (refused)" : "");
  }

  LiveGroup group_of(const ShownGroup& group, bool with_recent) const {
    const SeenMember* const member = sampler_->glance().member_of(group);
    LiveGroup made{
        .name = group.name, .rank = group.index, .size = segment_.size_of_group(group.block)};
    if (member == nullptr) return made;
    made.calls = member->last;
    if (member->last != 0) made.call = call_text(group, member->last);
    made.inside = live::is_inside(*member);
    made.failed = !made.inside && member->last != 0 && !member->finished_well;
    made.message = segment_.wait(group.block, group.index);
    if (const auto failure = segment_.failure(group.block)) {
      made.failure = names_of(failure->code()).exception;
    }
    if (!with_recent) return made;
    const std::uint64_t first =
        member->last > control::kRecords ? member->last - control::kRecords + 1 : 1;
    for (std::uint64_t each = first; each <= member->last; ++each) {
      made.recent.push_back(call_text(group, each));
    }
    return made;
  }

  void add_meters(int place, std::vector<LiveMeter>& meters) const {
    const live::BoardLayout* const board = sampler_->board(place);
    if (board == nullptr || board->meters.load(std::memory_order_relaxed) == 0) return;
    for (const live::MeterRow& row : board->rows) {
      if (!row.is_taken()) return;
      const engine::Kind kind = row.kind;
      if (static_cast<int>(kind) >= engine::kKindCount) continue;
      LiveMeter meter{
          .rank = number_of(place),
          .call = std::string(engine::name_of(kind)),
          .group = std::string(row.group.view()),
          .engine = std::string(row.engine.view()),
          .timed = row.timed,
          .failed = row.failed.load(std::memory_order_relaxed),
          .bytes = row.bytes.load(std::memory_order_relaxed),
          .seconds = 1e-9 * static_cast<double>(row.nanoseconds.load(std::memory_order_relaxed))};
      for (std::size_t i = 0; i < live::kBuckets; ++i) {
        meter.ended[i] = row.ended[i].load(std::memory_order_relaxed);
      }
      meters.push_back(std::move(meter));
    }
  }

  const std::uint64_t memory_;
  const bool is_of_threads_;
  const os::SegmentView view_;
  const Onlooker segment_;
  std::optional<live::Sampler> sampler_;
  std::vector<int> pids_;  // by place; 0: the rank no longer maps the segment
  std::chrono::steady_clock::time_point found_at_;
};

std::array<double, 14> meter_bounds() {
  std::array<double, live::kBuckets> bounds{};
  for (std::size_t i = 0; i < bounds.size(); ++i) bounds[i] = live::upper_bound_s(i);
  bounds.back() = std::numeric_limits<double>::infinity();
  return bounds;
}

JobView JobView::open(int pid) {
  return JobView(std::make_unique<Impl>(holder_of(os::segment_holders(pid), pid)));
}
JobView JobView::open(const FoundJob& job) {
  const auto held = os::segment_holders(job.pid);
  return JobView(std::make_unique<Impl>(holder_of(held, job.pid, job.memory)));
}
JobView::JobView(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
JobView::JobView(JobView&&) noexcept = default;
JobView& JobView::operator=(JobView&&) noexcept = default;
JobView::~JobView() = default;
void JobView::look() { impl_->look(); }
void JobView::begin_anew() { impl_->begin_anew(); }
bool JobView::lives() const { return impl_->lives(); }
LiveJob JobView::report(const LiveOptions& options) { return impl_->report(options); }

}  // namespace hocket
