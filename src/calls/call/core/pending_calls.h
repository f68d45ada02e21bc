// The pending calls of a communicator, for the threads that move them: a program's wait for its
// Work, and the progress thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "calls/call/turn_lock.h"
#include "foundation/base/deadline.h"

namespace hocket::call {

class Core;
class Operation;

// A part of a communicator's Core. Each thread takes the turn for one step at a time.
class PendingCalls {
 public:
  PendingCalls(Core& core, TurnLock& turn) noexcept : core_(core), turn_(turn) {}
  PendingCalls(const PendingCalls&) = delete;
  PendingCalls& operator=(const PendingCalls&) = delete;

  // Progresses pending calls until `operation` is done. Returns false if the deadline passes first.
  bool wait(Operation& operation, base::Deadline until);
  // Waits for a blocking call that is queued behind pending ones, and throws its error. The caller
  // has the turn.
  void finish(Operation& operation);
  void poke();  // makes one step, unless another thread does
  // See Work::withdraw.
  bool withdraw(Operation& receive);
  // Gives up an operation whose Work the program has dropped.
  void abandon(Operation& operation) noexcept;

  // Makes the progress thread move this communicator's calls. The caller has the turn.
  void watch(const Operation& operation);
  // Makes one step in the progress thread. kAttended: it did nothing, because threads of the
  // program move the pending calls. kAwaitsGpu: nothing moved, and a GPU will not ring the
  // doorbell.
  enum class Progress : std::uint8_t { kIdle, kAttended, kAwaitsGpu, kMoved, kNothingLeft };
  Progress progress() noexcept;

  // True if this thread is within a step.
  bool is_step_here() const noexcept { return turn_.is_step_here(); }

 private:
  class Step;

  bool is_attended() noexcept;
  void look_for_returned(Operation& operation) noexcept;
  void look_for_returned() noexcept;

  Core& core_;
  TurnLock& turn_;
  bool is_watched_ = false;  // true while the progress thread moves these calls
  // The values at the progress thread's last look.
  std::atomic<std::uint32_t> visits_seen_{0};
  bool awaited_gpu_ = false;
};

}  // namespace hocket::call
