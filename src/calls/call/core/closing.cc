#include "calls/call/core/closing.h"

#include <atomic>
#include <optional>

#include "calls/call/core.h"
#include "foundation/base/poll.h"
#include "membership/control/succession.h"

namespace hocket::call {

using base::Deadline;
using control::Cause;

namespace {

// Time limit for another thread to leave a call that has failed. That thread may wait for a GPU.
constexpr auto kCalledOut = std::chrono::seconds(10);
constexpr int kEagerEntries = 1000;  // tries without naps, because a step is short
// Time limit for other hosts to report their ranks' calls when this rank closes.
constexpr auto kToHear = std::chrono::milliseconds(200);
constexpr auto kHearingNap = std::chrono::microseconds(100);

}  // namespace

Closing::Entry Closing::enter() noexcept {
  if (core_.pending.is_step_here() || core_.reentry.holds_turn_in_callback()) return Entry::kInside;
  // A thread that makes a step leaves soon, and the progress thread then sees that the communicator
  // is closed. A thread in a call uses the engines, so this function makes it leave first.
  bool is_told = false;
  std::optional<Entry> outcome;
  const auto deadline = Deadline::in(kCalledOut);
  const auto is_over = [&](bool) {
    auto found = TurnLock::Who::kNobody;
    if (turn_.try_enter(TurnLock::Who::kUser, &found)) {
      outcome = Entry::kEntered;
    } else if (found == TurnLock::Who::kUser && turn_.is_user_here()) {
      outcome = Entry::kInside;
    } else if (found == TurnLock::Who::kUser) {
      if (deadline.has_passed()) outcome = Entry::kStuck;
      if (!is_told) {
        is_called_out_.store(true, std::memory_order_relaxed);
        core_.group().fail(core_.failures.own(Cause::kClosedEarly));
        control::HostControl& host = core_.job().host();
        host.doorbells.ring(host.self());
      }
      is_told = true;
      // The thread inside may be blocked in the GPU driver until streams go on, and the streams may
      // wait for calls. The failure ends those calls only when a thread steps them, so this thread
      // does.
      if (turn_.try_enter(TurnLock::Who::kWaiter)) {
        core_.runner().advance(true);
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

void Closing::compare_last_calls() {
  if (core_.rank() < 0 || core_.job().has_left()) return;
  if (!core_.group().failed()) {
    hear_of_last_calls();
    // If two ranks close at once, at least one sees the other's records.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    core_.failures.raise_any(
        core_.ledger().compare_ended(core_.group().last_sequence(core_.rank())));
  } else if (!core_.failures.is_seen() && core_.group().failure().code() == ErrorCode::kMismatch) {
    core_.failures.raise_failure();
  }
}

// Waits only briefly for the calls of ranks on other hosts. The rank that closes last sees this
// rank's calls anyway, and compares them.
void Closing::hear_of_last_calls() {
  const std::uint64_t last = core_.group().last_sequence(core_.rank());
  if (!core_.group().spans() || last == 0) return;
  const control::Succession succession(core_.group());
  const auto have_told = [&] {
    core_.group().ask();
    for (int i = 0; i < core_.size(); ++i) {
      if (core_.group().last_sequence(i) < last && !succession.is_lost(i)) return false;
    }
    return true;
  };
  base::poll_until(have_told, Deadline::in(kToHear), kHearingNap);
}

void Closing::compare_at_exit() {
  if (!core_.is_open() || core_.forks().forked() || core_.rank() < 0 ||
      core_.reentry.holds_turn_in_callback())
    return;
  // Takes the turn as for a step. So a thread that makes a call meanwhile waits, and is not
  // refused.
  if (!turn_.try_enter(TurnLock::Who::kWaiter)) return;
  struct Leaves {
    TurnLock& turn;
    ~Leaves() { turn.leave(); }
  } const leaves{turn_};
  compare_last_calls();
}

void Closing::drop_calls(Cause cause) noexcept {
  if (!core_.runner().busy()) return;
  core_.group().fail(core_.failures.own(cause));
  try {
    core_.failures.raise_failure();
  } catch (...) {
    core_.runner().fail_all(std::current_exception());
  }
}

}  // namespace hocket::call
