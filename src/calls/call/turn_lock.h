// The lock of a communicator: one thread at a time uses it, which is checked.
//
// A thread that comes repeatedly, the favourite, gets a fast path of two plain stores. Another
// thread first takes that path away, and pays for both with a fence on all processors (biased
// locking; Russell and Detlefs, OOPSLA 2006).
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
  // kUser makes a call, and may stay inside. kWaiter, which waits for a pending call, and kProgress
  // take one step at a time.
  enum class Who : std::uint32_t { kNobody, kUser, kWaiter, kProgress };

  // A thread that finds another at a step this many times gives its processor away. The other may
  // have lost its processor, perhaps to this thread.
  static constexpr int kStepsMet = 64;

  // `fences`: os::heavy_fence works in this process; without it there is no fast path. `visits`:
  // this many in a row make a thread the favourite.
  explicit TurnLock(bool fences, int visits = 16) noexcept
      : fences_(fences), visits_wanted_(visits) {}
  TurnLock(const TurnLock&) = delete;
  TurnLock& operator=(const TurnLock&) = delete;

  // Takes the fast path. True: this thread is inside, and leaves by leave_shortly.
  bool enter_shortly() noexcept {
    const std::uintptr_t self = this_thread();
    if (favourite_.load(std::memory_order_relaxed) != self) return false;
    FastSlot& slot = *slot_of(self);
    if (slot.inside.load(std::memory_order_relaxed)) return false;  // from a callback
    slot.inside.store(true, std::memory_order_relaxed);
    os::light_fence();  // pairs with the heavy one in try_enter
    if (favourite_.load(std::memory_order_relaxed) == self) return true;
    slot.inside.store(false, std::memory_order_release);
    return false;
  }
  void leave_shortly() noexcept {
    slot_of(this_thread())->inside.store(false, std::memory_order_release);
  }

  // Takes the slow path. False: another thread is inside, and `found` is its role.
  bool try_enter(Who who, Who* found = nullptr) noexcept;
  void leave() noexcept { holder_.store(Who::kNobody, std::memory_order_release); }
  // Does the same for a user's thread that leaves no pending calls. The only visitor for some time
  // becomes the favourite.
  void leave_quietly() noexcept;

  // A user inside lends the lock: others take steps meanwhile, and it stays the user. `take_back`
  // waits for the thread at a step.
  void lend() noexcept;
  void take_back() noexcept;

  // True if this thread is the user inside. Call this only after `try_enter` reported a user.
  // Favourites also enter once by the slow path, so `user_` names the current user.
  bool is_user_here() const noexcept {
    return user_.load(std::memory_order_relaxed) == this_thread();
  }

  // True if the progress thread is inside. Call it only inside.
  bool is_progress() const noexcept {
    return holder_.load(std::memory_order_relaxed) == Who::kProgress;
  }

 private:
  // Each slot belongs to one thread for the life of the lock, because a former favourite may still
  // try the fast path and must not clear another thread's mark. A thread that finds no free slot
  // takes the slow path.
  struct FastSlot {
    base::Atomic<std::uintptr_t> owner{0};
    base::Atomic<bool> inside{false};  // inside by the fast path
  };

  // Null: the thread has none. A thread always finds its own slot, even while others look for
  // theirs.
  FastSlot* slot_of(std::uintptr_t thread) noexcept {
    for (FastSlot& slot : slots_) {
      if (slot.owner.load(std::memory_order_relaxed) == thread) return &slot;
    }
    return nullptr;
  }
  bool has_slot(std::uintptr_t thread) noexcept;  // takes a free slot if the thread has none
  bool is_one_inside() const noexcept;
  void take_from_favourite() noexcept;

  const bool fences_;
  const int visits_wanted_;
  base::Atomic<std::uintptr_t> favourite_{0};
  std::array<FastSlot, 4> slots_;
  base::Atomic<Who> holder_{Who::kNobody};
  base::Atomic<std::uintptr_t> user_{0};  // the last user that entered by the slow path
  base::Atomic<bool> lent_{false};        // by a user that will take it back
  bool lent_shortly_ = false;             // the lender entered by the fast path; only it uses this
  // Guarded by the slow path.
  std::uintptr_t visitor_ = 0;
  int visits_ = 0;
};

}  // namespace hocket::call
