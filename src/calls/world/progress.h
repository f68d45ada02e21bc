// hocket's progress thread. It holds the words by which others notice this process's death, watches
// the others' words, and moves calls that no thread waits for.
#pragma once

#include <memory>
#include <thread>

#include "calls/call/core.h"
#include "calls/call/periodic_task.h"
#include "hocket/run_clock.h"
#include "membership/control/host.h"
#include "membership/failure/witness.h"

namespace hocket::world {

// A resource: the thread, from construction to destruction. The thread may itself be the last user
// of the world that owns this, and so destroy it. Data that it needs for its end is therefore in
// State, which it shares.
class ProgressThread {
 public:
  // If `witness` is given, watches for deaths of other processes, and has it find out how they
  // ended.
  ProgressThread(std::shared_ptr<control::HostControl> host,
                 std::shared_ptr<failure::Witness> witness);
  ~ProgressThread();

  // Has the thread move `communicator`'s calls until none is under way.
  void add(std::shared_ptr<call::Core> communicator);
  // True if no such calls are left.
  bool is_idle() const noexcept;
  // Makes the thread look at `task` regularly, as long as that lives.
  void add_periodic_task(std::weak_ptr<call::PeriodicTask> task);
  // Makes the thread tick, too, when others change `word` and wake it.
  void listen(os::FutexWord& word);
  // Makes the thread check which ranks live: call it once all ranks of the host have arrived.
  void look_again() noexcept;

 private:
  class State;
  const RunClock::Watch clock_watch_;  // the deadlines of calls want it
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace hocket::world
