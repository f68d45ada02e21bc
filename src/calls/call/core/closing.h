// The close of a communicator: it takes the turn, compares the last calls, and ends pending calls.
#pragma once

#include <atomic>
#include <cstdint>

#include "calls/call/planner.h"
#include "calls/call/turn_lock.h"
#include "membership/control/group.h"

namespace hocket::call {

class Core;

// A part of a communicator's Core, for the thread that closes it.
class Closing {
 public:
  // The communicator owns the turn, the engines and `open`, which is true while it is open.
  Closing(Core& core, TurnLock& turn, std::atomic<bool>& open, Engines& engines) noexcept
      : core_(core), turn_(turn), open_(open), engines_(engines) {}
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

  // Closes the communicator to new calls. Returns true for the first caller alone.
  bool begin() noexcept { return open_.exchange(false); }
  // The result of a closing thread's entry. kInside: this thread is already inside, because a
  // callback, operator or signal handler of a call closes the communicator. kStuck: another thread
  // did not leave in time.
  enum class Entry : std::uint8_t { kEntered, kInside, kStuck };
  Entry enter() noexcept;
  void leave() noexcept { turn_.leave(); }
  // True if a closing thread waits for the thread inside. That thread must then end its wait.
  bool is_called_out() const noexcept { return is_called_out_.load(std::memory_order_relaxed); }

  // Compares this rank's last calls with those of the other ranks, before they see it close. The
  // caller has the turn. Throws Mismatch if the calls differ and the program has not seen that
  // error.
  // Some calls end on a rank without any other rank, such as a broadcast on the root, so they were
  // not compared before. The last rank to close sees the records of all ranks.
  void compare_last_calls();
  // Called when the process ends without a close. Compares the calls that were not compared before.
  // Throws Mismatch. Does nothing while another thread is in a call, which then fails.
  void compare_at_exit();
  // Ends all pending calls by `cause`.
  void drop_calls(control::Cause cause) noexcept;
  void drop_engines() noexcept { engines_ = {}; }

 private:
  void hear_of_last_calls();

  Core& core_;
  TurnLock& turn_;
  std::atomic<bool>& open_;
  Engines& engines_;
  std::atomic<bool> is_called_out_{false};
};

}  // namespace hocket::call
