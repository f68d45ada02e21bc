// hocket's progress thread. It holds the words by which other ranks notice this process's death,
// watches other ranks' words, and moves calls that no thread waits for.
#pragma once

#include <memory>
#include <thread>

#include "calls/call/core.h"
#include "calls/call/periodic_task.h"
#include "hocket/run_clock.h"
#include "membership/control/host/host.h"
#include "membership/failure/witness.h"

namespace hocket::world {

// A resource: the thread, from construction to destruction. The thread may be the last user of the
// world that owns this object, and so destroy it. So the data that the thread needs until its end
// is in State, which both share.
class ProgressThread {
 public:
  // If `witness` is given, watches for deaths of other processes, and has it find out how they
  // ended.
  ProgressThread(std::shared_ptr<control::HostControl> host,
                 std::shared_ptr<failure::Witness> witness);
  ~ProgressThread();

  // Makes the thread move `communicator`'s calls until none is pending.
  void add(std::shared_ptr<call::Core> communicator);
  // True if no communicator that was added has pending calls.
  bool is_idle() const noexcept;
  // Makes the thread look at `task` regularly, as long as the task lives.
  void add_periodic_task(std::weak_ptr<call::PeriodicTask> task);
  // Makes the thread tick also when another process changes `word` and wakes the thread.
  void set_tick_word(os::FutexWord& word);
  // Makes the thread check which ranks live: call it once all ranks of the host have arrived.
  void look_again() noexcept;

 private:
  class State;
  const RunClock::Watch clock_watch_;  // needed for the deadlines of calls
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace hocket::world
