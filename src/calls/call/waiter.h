// A thread's wait for a peer: it spins while spinning can pay, then yields its processor, then
// sleeps.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "foundation/base/deadline.h"
#include "foundation/base/relax.h"
#include "membership/control/host/host.h"

namespace hocket::call {

// Interval between looks at a GPU, which does not ring the doorbell.
inline constexpr std::chrono::milliseconds kGpuLook{1};

// A value for the length of one wait. Use:
//
//     while (task.step() == kPending) {
//       if (waiter.pause()) check();   // now and then: failures, deadline
//       ...
//     }
//
// Successive calls of `pause` get slower. At last it sleeps on the rank's doorbell, which is rung
// by the thread that moves the wait forward. `check` must notice all events that ring the bell,
// too.
class Waiter {
 public:
  // kCaller may spin. kBackground should not. kTimedCaller has a time limit: it mostly waits for
  // another rank's computation, not for the next step of a call.
  enum class Patience : std::uint8_t { kCaller, kTimedCaller, kBackground };
  explicit Waiter(control::HostControl& host, Patience patience = Patience::kCaller) noexcept
      : doorbells_(host.doorbells),
        processors_(host.processors),
        gives_way_(processors_.may_spin() || patience != Patience::kCaller),
        spins_(!processors_.may_spin()
                   ? (gives_way_ && processors_.is_busy() ? kCrowdedBusySpins : 0)
               : processors_.is_busy()             ? kBusySpins
               : patience == Patience::kBackground ? kShortSpins
                                                   : kSpins),
        asks_(patience == Patience::kBackground ? Asks::kBackground : Asks::kCaller) {}

  // True when it is time to check for other events.
  bool pause() noexcept {
    if (armed_) return sleep();
    ++pauses_;
    if (++polls_ < spins_) {
      if (polls_ > kEagerPolls) base::relax();
      if (polls_ == kTimedPolls) looked_at_ = Clock::now();
      if (polls_ % kPollsALook == kCrowdPolls && keeps_others_away()) {
        crowded_ = true;
        polls_ = spins_;
      }
      return pauses_ % kPollsALook == 0;
    }
    return pause_slowly();
  }
  // Something moved, even one step of a long call: restart the pace. Without this, a call longer
  // than the spin would sleep at each of its steps.
  void moved() noexcept {
    disarm();
    polls_ = 0;
    crowded_ = false;
    looked_at_ = {};
  }
  // Call it when another thread of this process has the turn for a step. If that repeats, the other
  // thread may have lost its processor, perhaps to this thread.
  void note_contention() noexcept;
  // Sets further futex words that end the sleep. They must live as long as the wait.
  void also(std::span<const os::FutexWait> words) noexcept { more_ = words; }
  // Sets the latest time to wake up, such as a deadline.
  void wake_by(base::Deadline deadline) noexcept { deadline_ = deadline; }
  ~Waiter() { disarm(); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

 private:
  // The first polls leave out the processor's pause instruction, which in a virtual machine may
  // take longer than the awaited event.
  static constexpr std::uint32_t kEagerPolls = 4'000;
  static constexpr std::uint32_t kSpins = 20'000;  // about a millisecond
  static constexpr std::uint32_t kShortSpins = 2'000;
  static constexpr std::uint32_t kPollsALook = 2'048;  // a tenth of a millisecond
  // polls before the check whether a peer shares this processor
  static constexpr std::uint32_t kCrowdPolls = 256;
  // The time from this poll to that check shows whether polls are slow, for example if an MPI
  // yields in each poll. Shorter waits do not read the clock.
  static constexpr std::uint32_t kTimedPolls = 128;
  static constexpr std::chrono::milliseconds kSlowPolls{10};
  static constexpr std::uint32_t kYields = 100;        // if there is a processor for each rank
  static constexpr std::uint32_t kCrowdedYields = 20;  // yields if ranks share processors
  static constexpr std::uint32_t kYieldsALook = 16;
  // A rank that lost its processor for this long waited for a scheduling round, because other
  // threads want the processor.
  static constexpr std::chrono::milliseconds kLostTurn{2};
  static constexpr std::uint32_t kBusySpins = 1'000;  // while the machine is busy
  // Spins while the machine is busy and ranks share processors. There are a few, because an answer
  // may come from a rank on another processor.
  static constexpr std::uint32_t kCrowdedBusySpins = 300;
  using Clock = std::chrono::steady_clock;
  using Asks = control::ProcessorSharing::Asks;
  // True if spinning must stop: a peer was last seen on this processor, or others want it.
  bool keeps_others_away() noexcept;
  bool lost_turn(Clock::time_point before) noexcept;
  bool pause_slowly() noexcept;
  bool sleep() noexcept;
  void disarm() noexcept;

  control::Doorbells& doorbells_;
  control::ProcessorSharing& processors_;
  // True if the wait sleeps early while the machine is busy. False for callers of ranks that share
  // processors: yields are quicker there, because mostly another rank gets the processor.
  const bool gives_way_;
  std::uint32_t spins_;
  Asks asks_;
  std::uint32_t polls_ = 0;   // since something moved
  std::uint32_t pauses_ = 0;  // number of pauses in this wait, for the rate of checks
  Clock::time_point looked_at_{};
  std::uint32_t contentions_ = 0;
  bool crowded_ = false;  // the awaited rank may need this processor
  bool armed_ = false;    // announced as a sleeper; polled once more since
  std::uint32_t ticket_ = 0;
  base::Deadline deadline_ = base::Deadline::never();
  std::span<const os::FutexWait> more_;
};

}  // namespace hocket::call
