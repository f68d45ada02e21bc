// The lock of a communicator. It lets in one thread at a time, and tells the others who is inside.
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
  // The role in which a thread has the turn. kUser makes a call, and may keep the turn for the
  // whole call. kWaiter, which waits for a pending call, and kProgress keep it for one step at a
  // time.
  enum class Who : std::uint32_t { kNobody, kUser, kWaiter, kProgress };

  // A thread that finds another thread at a step this many times gives its processor away. The
  // other thread may have lost its processor, perhaps to this thread.
  static constexpr int kStepsMet = 64;

  // `fences`: os::heavy_fence works in this process; without it there is no fast path. `visits`:
  // this many in a row make a thread the favourite.
  explicit TurnLock(bool fences, int visits = 16) noexcept
      : fences_(fences), visits_wanted_(visits) {}
  TurnLock(const TurnLock&) = delete;
  TurnLock& operator=(const TurnLock&) = delete;

  // Tries the fast path. If it returns true, this thread is inside and leaves by `leave_fast`. If
  // it returns false, `try_enter` is next.
  bool enter_fast() noexcept {
    const std::uintptr_t self = this_thread();
    if (favourite_.load(std::memory_order_relaxed) != self) return false;
    FastSlot& slot = *slot_of(self);
    if (slot.inside.load(std::memory_order_relaxed)) return false;  // called within a call
    slot.inside.store(true, std::memory_order_relaxed);
    os::light_fence();  // pairs with the heavy one in try_enter
    if (favourite_.load(std::memory_order_relaxed) == self) return true;
    slot.inside.store(false, std::memory_order_release);
    return false;
  }
  void leave_fast() noexcept {
    slot_of(this_thread())->inside.store(false, std::memory_order_release);
  }

  // Takes the slow path. False: another thread is inside, and `found` is its role.
  bool try_enter(Who who, Who* found = nullptr) noexcept;
  void leave() noexcept { holder_.store(kFree, std::memory_order_release); }
  // Leaves, for a user without pending calls. A thread that was the only visitor for some time
  // becomes the favourite here.
  void leave_quietly() noexcept;

  // A user inside lends the lock: until `take_back`, other threads may take steps, but no other
  // user gets in. `take_back` waits until a thread that is at a step has left.
  void lend() noexcept;
  void take_back() noexcept;

  // True if this thread is a user inside. Signal handlers may ask, at any instruction.
  bool is_user_here() noexcept {
    const std::uintptr_t self = this_thread();
    if (is_held_by(self, Who::kUser)) return true;
    if (lender_.load(std::memory_order_relaxed) == self) return true;
    const FastSlot* slot = slot_of(self);
    return slot != nullptr && slot->inside.load(std::memory_order_relaxed);
  }
  // True if this thread is at a step. Signal handlers may ask, too.
  bool is_step_here() const noexcept {
    const std::uintptr_t self = this_thread();
    return is_held_by(self, Who::kWaiter) || is_held_by(self, Who::kProgress);
  }

  // True if the progress thread is inside. Call it only inside.
  bool is_progress() const noexcept {
    return who_of(holder_.load(std::memory_order_relaxed)) == Who::kProgress;
  }

 private:
  // The holder's thread and role in one word. A signal's handler may interrupt a thread anywhere,
  // and must see whether its own thread is inside.
  using Holder = std::uint64_t;
  static constexpr Holder kFree = 0;
  static Holder holder_of(std::uintptr_t thread, Who who) noexcept {
    return Holder{thread} << 2 | static_cast<Holder>(who);
  }
  static Who who_of(Holder holder) noexcept { return static_cast<Who>(holder & 3); }
  bool is_held_by(std::uintptr_t thread, Who who) const noexcept {
    return holder_.load(std::memory_order_relaxed) == holder_of(thread, who);
  }

  // Each slot belongs to one thread for the life of the lock. A former favourite may still try the
  // fast path, and must not clear another thread's mark. A thread that finds no free slot takes the
  // slow path.
  struct FastSlot {
    base::Atomic<std::uintptr_t> owner{0};
    base::Atomic<bool> inside{false};  // inside by the fast path
  };

  // Returns the thread's slot, or null if it has none. A thread always finds its own slot, even
  // while others look for theirs.
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
  base::Atomic<Holder> holder_{kFree};      // inside by the slow path
  base::Atomic<std::uintptr_t> lender_{0};  // a user that will take the lock back; 0: none
  bool lent_fast_ = false;  // the lender entered by the fast path; only it uses this
  // Guarded by the slow path.
  std::uintptr_t visitor_ = 0;
  int visits_ = 0;
};

}  // namespace hocket::call
