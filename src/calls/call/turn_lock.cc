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
  // From here on, either this thread sees the favourite inside, or the favourite sees that it has
  // lost the fast path.
  if (favourite != this_thread()) os::heavy_fence();
}

bool TurnLock::try_enter(Who who, Who* found) noexcept {
  const std::uintptr_t self = this_thread();
  Holder holder = kFree;
  // The exchange also releases: a thread that finds this thread inside sees its earlier writes,
  // such as the close of the communicator.
  if (!holder_.compare_exchange_strong(holder, holder_of(self, who), std::memory_order_acq_rel)) {
    if (found != nullptr) *found = who_of(holder);
    return false;
  }
  take_from_favourite();
  // A user that has lent the turn still counts as inside for other users.
  if (is_one_inside() || (who == Who::kUser && lender_.load(std::memory_order_acquire) != 0)) {
    leave();
    if (found != nullptr) *found = Who::kUser;
    return false;
  }
  if (who != Who::kUser && visitor_ != self) visitor_ = 0;
  return true;
}

void TurnLock::lend() noexcept {
  // A thread that sees the store by which this thread leaves sees this store, too.
  lender_.store(this_thread(), std::memory_order_relaxed);
  const FastSlot* slot = slot_of(this_thread());
  lent_fast_ = slot != nullptr && slot->inside.load(std::memory_order_relaxed);
  if (lent_fast_) {
    leave_fast();
  } else {
    leave();
  }
}

void TurnLock::take_back() noexcept {
  const Holder self = holder_of(this_thread(), Who::kUser);
  Holder holder = kFree;
  while (!holder_.compare_exchange_weak(holder, self, std::memory_order_acq_rel)) {
    holder = kFree;
    base::relax();
  }
  lender_.store(0, std::memory_order_relaxed);
  if (!lent_fast_) return;
  // Marks this thread as inside on the fast path, favourite or not, so that others see it.
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
