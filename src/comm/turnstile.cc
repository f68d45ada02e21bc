#include "comm/turnstile.h"

namespace hocket::comm {

bool Turnstile::try_enter(Who who, Who* found) noexcept {
  Who expected = Who::kNobody;
  // Released, too: whoever finds this one in sees what it did before, as closing the communicator.
  if (!holder_.compare_exchange_strong(expected, who, std::memory_order_acq_rel)) {
    if (found != nullptr) *found = expected;
    return false;
  }
  const std::uintptr_t favourite = favourite_.load(std::memory_order_relaxed);
  if (favourite != 0) {
    favourite_.store(0, std::memory_order_relaxed);
    // From here on the favourite either has been seen inside, or sees that it is none.
    if (favourite != this_thread()) os::heavy_fence();
  }
  if (inside_.load(std::memory_order_acquire)) {
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

void Turnstile::leave_quietly() noexcept {
  const std::uintptr_t self = this_thread();
  visits_ = visitor_ == self ? visits_ + 1 : 1;
  visitor_ = self;
  if (fences_ && visits_ >= kVisits) {
    visits_ = 0;
    favourite_.store(self, std::memory_order_relaxed);
  }
  leave();
}

}  // namespace hocket::comm
