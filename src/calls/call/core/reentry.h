// Uses of a communicator from within its own calls: by callbacks, operators and signal handlers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "calls/call/runner.h"
#include "calls/call/turn_lock.h"
#include "hocket/error.h"

namespace hocket::call {

class Core;

// A part of a communicator's Core; safe from any thread.
class Reentry {
 public:
  Reentry(Core& core, TurnLock& turn, const std::optional<Runner>& runner) noexcept
      : core_(core), turn_(turn), runner_(runner) {}
  Reentry(const Reentry&) = delete;
  Reentry& operator=(const Reentry&) = delete;

  // Runs the callback of a call that has already ended. This thread need not have the turn.
  void run_callback(const std::function<void()>& callback) noexcept;
  // True if this thread runs a callback of one of its calls. Calls of the callback are refused.
  bool is_in_callback() const noexcept;
  // True if this thread runs the callback within the step that ended the call. The thread then has
  // the turn, so a wait for the turn would never end.
  bool holds_turn_in_callback() const noexcept { return runner_ && runner_->is_concluding_here(); }
  // Throws if this thread runs a callback of a call, or a user's operator or signal handler in a
  // step.
  void refuse_in_callback() const;
  [[noreturn]] void refuse_within_call() const;
  // Returns the error of a call that a callback makes.
  InvalidArgument callback_error() const;

 private:
  Core& core_;
  TurnLock& turn_;
  const std::optional<Runner>& runner_;  // absent until the communicator can make calls
  // The threads within `run_callback`, by this_thread(). Guarded by the mutex. `count_` is their
  // number, which a thread reads without the mutex.
  mutable std::mutex mutex_;
  std::vector<std::uintptr_t> threads_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace hocket::call
