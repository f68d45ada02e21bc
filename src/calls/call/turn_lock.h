// Who is at work on a communicator: one thread at a time, which is checked.
//
// A thread that comes again and again gets a short way in, of two plain stores. Whoever else comes
// takes it away first and pays for both with a fence on all processors (biased locking; Russell and
// Detlefs, OOPSLA 2006).
#pragma once

#include <array>
#include <cstdint>

#include "foundation/base/atomic.h"
#include "foundation/base/this_thread.h"
#include "foundation/os/futex.h"

namespace hocket::call {

using base::this_thread;

// A resource; safe from any thread.
class TurnLock {
 public:
  // kUser makes a call, and may stay; kWaiter, who waits for one that is under way, and kProgress
  // take one step at a time.
  enum class Who : std::uint32_t { kNobody, kUser, kWaiter, kProgress };

  // A thread that finds a step under way as often as this gives its processor away: the one at the
  // step may have lost it, perhaps to this very thread.
  static constexpr int kStepsMet = 64;

  // `fences`: whether os::heavy_fence works in this process; without it there is no short way.
  // `visits`: as many in a row make a favourite.
  explicit TurnLock(bool fences, int visits = 16) noexcept
      : fences_(fences), visits_wanted_(visits) {}
  TurnLock(const TurnLock&) = delete;
  TurnLock& operator=(const TurnLock&) = delete;

  // The short way. True: in; leave the same way.
  bool enter_shortly() noexcept {
    const std::uintptr_t self = this_thread();
    if (favourite_.load(std::memory_order_relaxed) != self) return false;
    Seat& seat = *seat_of(self);
    if (seat.inside.load(std::memory_order_relaxed)) return false;  // from a callback
    seat.inside.store(true, std::memory_order_relaxed);
    os::light_fence();  // pairs with the heavy one in try_enter
    if (favourite_.load(std::memory_order_relaxed) == self) return true;
    seat.inside.store(false, std::memory_order_release);
    return false;
  }
  void leave_shortly() noexcept {
    seat_of(this_thread())->inside.store(false, std::memory_order_release);
  }

  // The long way. False: somebody is in, `found` says who.
  bool try_enter(Who who, Who* found = nullptr) noexcept;
  void leave() noexcept { holder_.store(Who::kNobody, std::memory_order_release); }
  // The same for a user's thread that leaves nothing under way behind: if it is always the same,
  // it gets the short way.
  void leave_quietly() noexcept;

  // A user who is in lets others take steps meanwhile, and is still the user. `take_back` waits
  // until the one who is at a step has ended it.
  void lend() noexcept;
  void take_back() noexcept;

  // Whether the user who is in is this thread. Meant for who was told that a user is in: that one
  // is who last came in by the long way, as a favourite has, too.
  bool is_user_here() const noexcept {
    return user_.load(std::memory_order_relaxed) == this_thread();
  }

  // Whether the progress thread is in. Meant for whoever is in.
  bool is_progress() const noexcept {
    return holder_.load(std::memory_order_relaxed) == Who::kProgress;
  }

 private:
  // Of one thread that is or was the favourite, for good: one that was may still come in vain, and
  // nobody else's mark may go with its own. Who finds no seat free has no short way.
  struct Seat {
    base::Atomic<std::uintptr_t> owner{0};
    base::Atomic<bool> inside{false};  // it is in, by the short way
  };

  // Null: it has none. Threads find their own, whatever the others do meanwhile.
  Seat* seat_of(std::uintptr_t thread) noexcept {
    for (Seat& seat : seats_) {
      if (seat.owner.load(std::memory_order_relaxed) == thread) return &seat;
    }
    return nullptr;
  }
  bool has_seat(std::uintptr_t thread) noexcept;  // takes one if there is one
  bool is_one_inside() const noexcept;
  void take_from_favourite() noexcept;

  const bool fences_;
  const int visits_wanted_;
  base::Atomic<std::uintptr_t> favourite_{0};
  std::array<Seat, 4> seats_;
  base::Atomic<Who> holder_{Who::kNobody};
  base::Atomic<std::uintptr_t> user_{0};  // the last user who came in by the long way
  base::Atomic<bool> lent_{false};        // by a user who comes back
  bool lent_shortly_ = false;             // and came by the short way; the lender's
  // Guarded by being in the long way.
  std::uintptr_t visitor_ = 0;
  int visits_ = 0;
};

}  // namespace hocket::call
