#include "membership/failure/witness.h"

#include <algorithm>

#include "foundation/base/poll.h"

namespace hocket::failure {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kWitnesses = 4;  // for each rank: some may die at the same time as the rank
constexpr milliseconds kWaitForEnd{2};
// The longest wait for a process that is certain to end, on a busy machine.
constexpr milliseconds kWaitWhileItEnds{50};
constexpr microseconds kEagerly{50};
constexpr milliseconds kPatiently{20};
// The time after which a witness stops asking how a process ended.
constexpr std::chrono::seconds kLongest{60};

}  // namespace

base::Deadline Witness::look() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return base::Deadline::in(kPatiently);
  if (!met_) meet();
  auto next = base::Deadline::never();
  for (std::size_t i = 0; i < watched_.size();) {
    Watched& watched = watched_[i];
    if (liveness_->state(watched.rank) != control::RankState::kDied) {
      ++i;
    } else if (!liveness_->has_end(watched.rank) && look_at(watched)) {
      const bool eagerly = liveness_->since_death(watched.rank) < 2 * kWaitForEnd;
      next =
          std::min(next, base::Deadline::in(eagerly ? Duration(kEagerly) : Duration(kPatiently)));
      ++i;
    } else {
      watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return next;
}

// Starts watching, once all ranks have arrived. Their pids are unknown before.
void Witness::meet() {
  const int ranks = liveness_->ranks();
  for (int rank = 0; rank < ranks; ++rank) {
    if (liveness_->state(rank) == control::RankState::kAbsent) return;
  }
  met_ = true;
  for (int i = 1; i <= std::min(kWitnesses, ranks - 1); ++i) {
    const int rank = (liveness_->self() + i) % ranks;
    watched_.push_back({rank, os::ProcessExit(liveness_->pid(rank), liveness_->start(rank))});
  }
}

bool Witness::look_at(Watched& watched) {
  using State = os::ProcessExit::State;
  const auto answer = watched.process.ask();
  const auto since = liveness_->since_death(watched.rank);
  if (answer.state == State::kKnown) {
    liveness_->record_end(watched.rank, answer.status);
  } else if (answer.state == State::kNotYet && since > kWaitForEnd / 2 &&
             watched.process.was_replaced()) {
    liveness_->record_end(watched.rank, os::kReplaced);
    return false;
  }
  return answer.state == State::kNotYet && since < kLongest;
}

bool Witness::still_runs(int rank) const noexcept {
  const os::ProcessExit process(liveness_->pid(rank), liveness_->start(rank));
  return process.ask().state == os::ProcessExit::State::kNotYet;
}

std::optional<int> Witness::await_exit(int rank) {
  const os::ProcessExit process(liveness_->pid(rank), liveness_->start(rank));
  const auto is_decided = [&] {
    if (liveness_->has_end(rank)) return true;
    const auto answer = process.ask();
    if (answer.state == os::ProcessExit::State::kKnown) liveness_->record_end(rank, answer.status);
    return answer.state != os::ProcessExit::State::kNotYet ||
           liveness_->since_death(rank) >= kWaitWhileItEnds;
  };
  base::poll_until(is_decided, base::Deadline::never(), kEagerly);
  return liveness_->end(rank);
}

std::optional<int> Witness::await_end(int rank) {
  const os::ProcessExit process(liveness_->pid(rank), liveness_->start(rank));
  std::optional<int> end;
  const auto is_decided = [&] {
    look();  // this may be the thread that usually looks
    if ((end = liveness_->end(rank))) return true;
    const auto answer = process.ask();
    if (answer.state == os::ProcessExit::State::kKnown) {
      liveness_->record_end(rank, answer.status);
      end = liveness_->end(rank);
      return true;
    }
    const bool is_ending = answer.state == os::ProcessExit::State::kNotYet;
    return liveness_->since_death(rank) >= (is_ending ? kWaitWhileItEnds : kWaitForEnd);
  };
  base::poll_until(is_decided, base::Deadline::never(), microseconds(20));
  return end;
}

}  // namespace hocket::failure
