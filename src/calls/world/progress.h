// The thread in which hocket works by itself. It holds the words by which others learn of this
// process's death, watches theirs, and moves the calls that nobody waits for.
#pragma once

#include <memory>
#include <thread>

#include "calls/call/attended.h"
#include "calls/call/core.h"
#include "hocket/run_clock.h"
#include "membership/control/host.h"
#include "membership/failure/witness.h"

namespace hocket::world {

// A resource: the thread, from construction to destruction. The thread may itself be the last user
// of the world that owns this, and so end up destroying it; what it needs to come to its end then
// is its own, in State.
class ProgressThread {
 public:
  // `witness`: look out for deaths of other processes, and have it find out how they ended.
  ProgressThread(std::shared_ptr<control::HostControl> host,
                 std::shared_ptr<failure::Witness> witness);
  ~ProgressThread();

  // Has the thread move `communicator`'s calls until none is under way.
  void add(std::shared_ptr<call::Core> communicator);
  // Whether there are no such calls any more.
  bool is_idle() const noexcept;
  // Has the thread look at `attended` for as long as it lives.
  void attend(std::weak_ptr<call::Attended> attended);
  // Has it tick, too, when others change `word`, which they wake.
  void listen(os::FutexWord& word);
  // Has the thread look anew at who lives: to be called once all ranks of the host have arrived.
  void look_again() noexcept;

 private:
  class State;
  const RunClock::Watch clock_watch_;  // the deadlines of calls want it
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace hocket::world
