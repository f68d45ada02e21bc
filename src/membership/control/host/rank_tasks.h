// The tasks of a program whose ranks stay alive and run one task after another. See
// Communicator::begin_task.
#pragma once

#include <cstdint>

#include "membership/control/host/doorbells.h"
#include "membership/control/host/end_reasons.h"
#include "membership/control/host/view.h"

namespace hocket::control {

// The task of each rank, as one rank announces its own and reads the others'. A view: the segment
// and the other parts outlive it. Any thread.
class RankTasks : public HostView {
 public:
  RankTasks(const HostView& view, Doorbells& doorbells, EndReasons& end_reasons) noexcept
      : HostView(view), doorbells_(doorbells), end_reasons_(end_reasons) {}

  // Begin task `number`, which is not 0, and end the current task.
  void begin(std::uint32_t number) noexcept {
    end_reasons_.withdraw();
    write(2 * number);
  }
  void end() noexcept { write(lines_[self_].task.load(std::memory_order_relaxed) | 1); }
  bool is_in_task() const noexcept {
    const std::uint32_t own = lines_[self_].task.load(std::memory_order_relaxed);
    return own != 0 && (own & 1) == 0;
  }
  // Returns whether this rank is in a task that the rank at `place` has already ended. If so, all
  // calls are visible that the other rank made in the task: this pairs with `write`.
  bool has_ended(int place) const noexcept {
    return is_in_task() && lines_[place].task.load(std::memory_order_acquire) ==
                               lines_[self_].task.load(std::memory_order_relaxed) + 1;
  }

 private:
  void write(std::uint32_t task) noexcept {
    lines_[self_].task.store(task, std::memory_order_release);
    doorbells_.ring_all();
  }

  Doorbells& doorbells_;
  EndReasons& end_reasons_;
};

}  // namespace hocket::control
