// The end of a communicator, and its reports.
#include <fmt/format.h>

#include <atomic>
#include <optional>

#include "calls/call/core.h"
#include "foundation/base/log.h"
#include "foundation/base/poll.h"
#include "membership/control/succession.h"
#include "membership/failure/caught.h"
#include "monitoring/observe/flight_record.h"

namespace hocket::call {

using base::Deadline;
using control::Cause;
using control::Failure;

namespace {

// For a thread in a call to come out of it once it has failed; one may wait for a GPU.
constexpr auto kCalledOut = std::chrono::seconds(10);
constexpr int kEagerEntries = 1000;  // a step is soon over
// Time for other hosts to report their ranks' calls, when this rank closes.
constexpr auto kToHear = std::chrono::milliseconds(200);
constexpr auto kHearingNap = std::chrono::microseconds(100);

}  // namespace

// Once this rank has said goodbye, that is the reason for any data that it no longer gives.
Failure Core::own_failure(Cause cause, std::string_view text) const noexcept {
  return {.cause = job_->has_left() ? Cause::kLeft : cause,
          .reporter = rank(),
          .culprit = rank(),
          .sequence = group_->last_sequence(rank()),
          .text = failure::text_within_memory(text)};
}

std::exception_ptr Core::ended_by(const Failure& failure) {
  group_->fail(failure);
  return ended();
}

std::exception_ptr Core::refused_by(const failure::Refusal& refusal) {
  try {
    texts_->raise(refusal);
  } catch (const Error&) {
    return std::current_exception();
  }
}

std::exception_ptr Core::ended() {
  if (!runner_->is_stepping()) told();
  try {
    texts_->raise(group_->failure());
  } catch (const Error&) {
    if (!written_.exchange(true) && !job_->dump_directory().empty()) {
      try {
        dump("");
      } catch (const Error& refused) {
        base::log(base::LogLevel::kWarning, fmt::format("no flight record: {}", refused.what()));
      }
    }
    return std::current_exception();
  }
}

// See engine::Consistency: the fingerprints differ; do the calls?
void Core::confirm(int peer, std::uint64_t sequence) {
  raise_any(ledger_->confirm(peer, sequence));
}

void Core::abort(const std::string& reason) {
  if (!open_ || forks_.forked()) return;
  group_->fail(own_failure(Cause::kAbortCalled, reason));
}

void Core::told() const noexcept {
  if (!group_->failed()) return;
  told_.store(true, std::memory_order_relaxed);
  if (group_->failure().code() == ErrorCode::kPeerDied) job_->tell_of_loss();
}

void Core::miss(const Operation& operation) noexcept {
  if (!open_ || forks_.forked()) return;
  try {
    std::rethrow_exception(operation.error());
  } catch (const InvalidArgument& refusal) {
    lose_device_call();
    const int peer = refusal.status().peer;
    Failure failure = own_failure(Cause::kRefused,
                                  group_->refusal(peer, operation.plan.call.sequence).value_or(""));
    failure.culprit = peer;
    failure.sequence = operation.plan.call.sequence;
    failure.signature = operation.call.shown;
    group_->fail(failure);
  } catch (...) {  // the communicator has ended by that, and says so
  }
}

void Core::raise_untold(bool cut_short) const {
  if (!group_->failed() || told_.load(std::memory_order_relaxed)) return;
  if (!lost_.load(std::memory_order_relaxed) && !cut_short) return;
  const Failure failure = group_->failure();
  if (failure.code() == ErrorCode::kAborted && failure.culprit == rank()) return;
  if (failure.code() == ErrorCode::kPeerDied && job_->has_told_of_loss()) return;
  told();
  texts_->raise(failure);
}

// --- Closing ------------------------------------------------------------------------------------

Core::Closing Core::enter_to_close() noexcept {
  if (holds_turn_in_callback()) return Closing::kInside;
  // Somebody may be at a step; the progress thread finds the communicator closed when it comes
  // again. A thread in a call is called out of it, as it needs the engines.
  bool is_told = false;
  std::optional<Closing> outcome;
  const auto deadline = Deadline::in(kCalledOut);
  const auto is_over = [&](bool) {
    auto found = TurnLock::Who::kNobody;
    if (turn_.try_enter(TurnLock::Who::kUser, &found)) {
      outcome = Closing::kEntered;
    } else if (found == TurnLock::Who::kUser && turn_.is_user_here()) {
      outcome = Closing::kInside;
    } else if (found == TurnLock::Who::kUser) {
      if (deadline.has_passed()) outcome = Closing::kStuck;
      if (!is_told) {
        is_called_out_.store(true, std::memory_order_relaxed);
        group_->fail(own_failure(Cause::kClosedEarly));
        control::HostControl& host = job_->host();
        host.ring(host.self());
      }
      is_told = true;
      // It may stand in the driver of a GPU whose streams wait for calls that the failure ends.
      if (turn_.try_enter(TurnLock::Who::kWaiter)) {
        runner_->advance(true);
        turn_.leave();
      }
    }
    return outcome.has_value();
  };
  base::Naps naps(std::chrono::microseconds(50), kEagerEntries);
  base::wait_until(is_over, naps);
  is_called_out_.store(false, std::memory_order_relaxed);
  return *outcome;
}

void Core::compare_last_calls() {
  if (rank() < 0 || job_->has_left()) return;
  if (!group_->failed()) {
    hear_of_last_calls();
    // If two ranks close at once, at least one sees the other's records.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    raise_any(ledger_->compare_ended(group_->last_sequence(rank())));
  } else if (!told_.load(std::memory_order_relaxed) &&
             group_->failure().code() == ErrorCode::kMismatch) {
    raise_failure();
  }
}

// Waits only briefly for ranks of other hosts: the rank that closes last hears of this one's calls.
void Core::hear_of_last_calls() {
  const std::uint64_t last = group_->last_sequence(rank());
  if (!group_->spans() || last == 0) return;
  const control::Succession succession(*group_);
  const auto have_told = [&] {
    group_->ask();
    for (int i = 0; i < size(); ++i) {
      if (group_->last_sequence(i) < last && !succession.is_lost(i)) return false;
    }
    return true;
  };
  base::poll_until(have_told, Deadline::in(kToHear), kHearingNap);
}

void Core::compare_at_exit() {
  if (!open_ || forks_.forked() || rank() < 0 || holds_turn_in_callback()) return;
  if (!turn_.try_enter(TurnLock::Who::kUser)) return;
  struct Leaves {
    TurnLock& turn;
    ~Leaves() { turn.leave(); }
  } const leaves{turn_};
  compare_last_calls();
}

void Core::drop_calls(Cause cause) noexcept {
  if (!runner_->busy()) return;
  group_->fail(own_failure(cause));
  try {
    raise_failure();
  } catch (...) {
    runner_->fail_all(std::current_exception());
  }
}

// --- Questions of the program -------------------------------------------------------------------

std::optional<Status> Core::status() const {
  refuse_forked();
  if (!open_ || !group_->failed()) return std::nullopt;
  told();
  return texts_->status(group_->failure());
}

std::vector<RankCall> Core::last_calls() const {
  refuse_forked();
  return texts_ ? texts_->last_calls() : std::vector<RankCall>{};
}

std::vector<RankCall> Core::recent_calls() const {
  refuse_forked();
  return texts_ ? texts_->recent_calls() : std::vector<RankCall>{};
}

std::string Core::dump(const std::string& directory) const {
  const std::string& where = directory.empty() ? job_->dump_directory() : directory;
  if (where.empty()) {
    throw InvalidArgument(
        "dump has no directory to write to; give one, or set HOCKET_DUMP_DIR for the job");
  }
  const auto error = status();
  return observe::write({.world_rank = job_->world_rank(),
                         .communicator = membership_.name,
                         .error = error ? error->message : "",
                         .recent = recent_calls(),
                         .ranks = last_calls()},
                        where);
}

}  // namespace hocket::call
