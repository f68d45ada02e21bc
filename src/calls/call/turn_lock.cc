#include "calls/call/turn_lock.h"

#include <algorithm>

#include "foundation/base/relax.h"

namespace hocket::call {

bool TurnLock::has_slot(std::uintptr_t thread) noexcept {
  if (slot_of(thread) != nullptr) return true;
  FastSlot* free = slot_of(0);
  if (free != nullptr) free->owner.store(thread, std::memory_order_relaxed);
  return free != nullptr;
}

bool TurnLock::is_one_inside() const noexcept {
  return std::ranges::any_of(
      slots_, [](const FastSlot& slot) { return slot.inside.load(std::memory_order_acquire); });
}

void TurnLock::take_from_favourite() noexcept {
  const std::uintptr_t favourite = favourite_.load(std::memory_order_relaxed);
  if (favourite == 0) return;
  favourite_.store(0, std::memory_order_relaxed);
  // From here on the favourite either has been seen inside, or sees that it is none.
  if (favourite != this_thread()) os::heavy_fence();
}

bool TurnLock::try_enter(Who who, Who* found) noexcept {
  Who expected = Who::kNobody;
  // This also releases. A thread that finds this one inside sees its earlier writes, such as
  // closing the communicator.
  if (!holder_.compare_exchange_strong(expected, who, std::memory_order_acq_rel)) {
    if (found != nullptr) *found = expected;
    return false;
  }
  take_from_favourite();
  // To other users, a user who has lent the turn is still inside.
  if (is_one_inside() || (who == Who::kUser && lent_.load(std::memory_order_acquire))) {
    leave();
    if (found != nullptr) *found = Who::kUser;
    return false;
  }
  if (who == Who::kUser) {
    user_.store(this_thread(), std::memory_order_relaxed);
  } else if (visitor_ != this_thread()) {
    visitor_ = 0;
  }
  return true;
}

void TurnLock::lend() noexcept {
  lent_.store(true, std::memory_order_relaxed);  // seen by threads that see the next store
  const FastSlot* slot = slot_of(this_thread());
  lent_shortly_ = slot != nullptr && slot->inside.load(std::memory_order_relaxed);
  if (lent_shortly_) {
    leave_shortly();
  } else {
    leave();
  }
}

void TurnLock::take_back() noexcept {
  Who expected = Who::kNobody;
  while (!holder_.compare_exchange_weak(expected, Who::kUser, std::memory_order_acq_rel)) {
    expected = Who::kNobody;
    base::relax();
  }
  lent_.store(false, std::memory_order_relaxed);
  if (!lent_shortly_) return;
  // Back inside by the fast path, favourite or not: a thread that comes sees that one is inside.
  slot_of(this_thread())->inside.store(true, std::memory_order_relaxed);
  leave();
}

void TurnLock::leave_quietly() noexcept {
  const std::uintptr_t self = this_thread();
  visits_ = visitor_ == self ? visits_ + 1 : 1;
  visitor_ = self;
  if (fences_ && visits_ >= visits_wanted_ && has_slot(self)) {
    visits_ = 0;
    favourite_.store(self, std::memory_order_relaxed);
  }
  leave();
}

}  // namespace hocket::call
