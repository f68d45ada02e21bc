// How a thread waits for a peer: spin while that can pay, then give the processor away, then sleep.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "foundation/base/deadline.h"
#include "foundation/base/relax.h"
#include "membership/control/host.h"

namespace hocket::call {

// How often to look by oneself for what a GPU does, which rings nobody.
inline constexpr std::chrono::milliseconds kGpuLook{1};

// A value for the length of one wait. Use:
//
//     while (task.step() == kPending) {
//       if (waiter.pause()) check();   // now and then: failures, deadline
//       ...
//     }
//
// `pause` gets slower the longer it is called; once it wants to sleep it does so on the rank's
// doorbell, which whoever moves the wait forward rings. `check` must notice what rings the bell
// too.
class Waiter {
 public:
  // A caller who waits has nothing better to do than to spin; a thread in the background has.
  enum class Patience : std::uint8_t { kCaller, kBackground };
  explicit Waiter(control::HostControl& host, Patience patience = Patience::kCaller) noexcept
      : host_(host),
        spins_(!host.may_spin()                ? 0
               : host.is_busy()                ? kBusySpins
               : patience == Patience::kCaller ? kSpins
                                               : kShortSpins),
        asks_(patience == Patience::kCaller ? control::HostControl::Asks::kCaller
                                            : control::HostControl::Asks::kBackground) {}

  // True when it is time to look at what else may have happened.
  bool pause() noexcept {
    if (armed_) return sleep();
    ++pauses_;
    if (++polls_ < spins_) {
      if (polls_ > kEagerPolls) base::relax();
      if (polls_ % kPollsALook == kCrowdPolls && keeps_others_away()) {
        crowded_ = true;
        polls_ = spins_;
      }
      return pauses_ % kPollsALook == 0;
    }
    return pause_slowly();
  }
  // Something moved, be it one step of a long call: begin again. Without this a call that takes
  // longer than the spin would sleep at each of its steps.
  void moved() noexcept {
    disarm();
    polls_ = 0;
    crowded_ = false;
    looked_at_ = {};
  }
  // Another thread of this process was at the step. Found there again and again, it may have lost
  // its processor, perhaps to this very thread.
  void met_another() noexcept;
  // Other words to wake up by; they must live as long as the wait.
  void also(std::span<const os::FutexWait> words) noexcept { more_ = words; }
  // The latest time to wake up, for whoever has a deadline to keep.
  void wake_by(base::Deadline deadline) noexcept { deadline_ = deadline; }
  ~Waiter() { disarm(); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

 private:
  // At first without the processor's pause, which in a virtual machine may cost more than what is
  // waited for.
  static constexpr std::uint32_t kEagerPolls = 4'000;
  static constexpr std::uint32_t kSpins = 20'000;  // about a millisecond
  static constexpr std::uint32_t kShortSpins = 2'000;
  static constexpr std::uint32_t kPollsALook = 2'048;  // a tenth of a millisecond
  static constexpr std::uint32_t kCrowdPolls = 256;    // when to ask first whether a peer is here
  static constexpr std::uint32_t kYields = 100;        // where there is a processor a rank
  static constexpr std::uint32_t kCrowdedYields = 20;  // where there is not
  static constexpr std::uint32_t kYieldsALook = 16;
  // A rank that lost its processor for so long, others want it: it waited for a scheduling round.
  static constexpr std::chrono::milliseconds kLostTurn{2};
  static constexpr std::uint32_t kBusySpins = 1'000;  // while the machine is busy
  using Clock = std::chrono::steady_clock;
  // Whether to stop spinning: a peer was last seen on this processor, or others want it.
  bool keeps_others_away() noexcept;
  bool lost_turn(Clock::time_point before) noexcept;
  bool pause_slowly() noexcept;
  bool sleep() noexcept;
  void disarm() noexcept;

  control::HostControl& host_;
  std::uint32_t spins_;
  control::HostControl::Asks asks_;
  std::uint32_t polls_ = 0;   // since something moved
  std::uint32_t pauses_ = 0;  // since the wait began, so that looks keep their rate
  Clock::time_point looked_at_{};
  std::uint32_t met_ = 0;
  bool crowded_ = false;  // whoever is waited for may need this very processor
  bool armed_ = false;    // announced as a sleeper; polled once more since
  std::uint32_t ticket_ = 0;
  base::Deadline deadline_ = base::Deadline::never();
  std::span<const os::FutexWait> more_;
};

}  // namespace hocket::call
