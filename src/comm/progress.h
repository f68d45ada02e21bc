// The one thread that hocket adds to a process. It holds the words by which others learn of this
// process's death, watches theirs, and moves the calls that nobody waits for.
#pragma once

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "control/host.h"

namespace hocket::comm {

class CommunicatorImpl;

// A resource: the thread, from construction to destruction.
class ProgressThread {
 public:
  // `watches`: look out for deaths of other processes (no use where ranks are threads).
  ProgressThread(control::HostControl& host, bool watches);
  ~ProgressThread();

  // Has the thread move `communicator`'s calls until none is under way.
  void add(std::shared_ptr<CommunicatorImpl> communicator);

 private:
  void run(bool watches);
  void watch_peers(std::vector<os::FutexWait>& waits);
  bool move_calls(bool* any_left);

  control::HostControl& host_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<CommunicatorImpl>> added_;    // guarded by mutex_
  std::vector<std::shared_ptr<CommunicatorImpl>> watched_;  // the thread's own
  std::atomic<bool> wakes_{false};                          // something was added
  std::atomic<bool> ready_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace hocket::comm
