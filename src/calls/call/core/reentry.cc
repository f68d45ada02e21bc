#include "calls/call/core/reentry.h"

#include <fmt/format.h>

#include <algorithm>

#include "calls/call/core.h"

namespace hocket::call {

void Reentry::run_callback(const std::function<void()>& callback) noexcept {
  // `try_enter` takes the fast path away from this thread, so that CallGuard checks for callbacks.
  // If it fails, another thread is inside, which has taken that path away already.
  if (turn_.try_enter(TurnLock::Who::kWaiter)) turn_.leave();
  const auto self = base::this_thread();
  {
    const std::lock_guard lock(mutex_);
    threads_.push_back(self);
    count_.store(threads_.size(), std::memory_order_relaxed);
  }
  callback();
  const std::lock_guard lock(mutex_);
  threads_.erase(std::ranges::find(threads_, self));
  count_.store(threads_.size(), std::memory_order_relaxed);
}

bool Reentry::is_in_callback() const noexcept {
  if (holds_turn_in_callback()) return true;
  if (count_.load(std::memory_order_relaxed) == 0) return false;  // a thread sees its own increment
  const std::lock_guard lock(mutex_);
  return std::ranges::find(threads_, base::this_thread()) != threads_.end();
}

void Reentry::refuse_in_callback() const {
  if (is_in_callback()) throw callback_error();
  if (core_.pending.is_step_here()) refuse_within_call();
}

void Reentry::refuse_within_call() const {
  throw InvalidArgument(fmt::format(
      "an operator, or a signal's handler, uses communicator {} within a call of that very "
      "communicator; have it set a flag, and make its call after that one",
      core_.membership().name));
}

InvalidArgument Reentry::callback_error() const {
  return InvalidArgument(
      fmt::format("a callback that Work::on_done was given uses communicator {} while it tells of "
                  "a call's end; have it tell another thread, which does so then",
                  core_.membership().name));
}

}  // namespace hocket::call
