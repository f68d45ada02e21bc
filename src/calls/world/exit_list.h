// The actions of hocket when the process ends.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/deadline.h"

namespace hocket::call {
class Core;
}

namespace hocket::world {

class WorldImpl;

// A resource of the process. Any thread may use it. A forked child ignores the entries that it
// inherited.
class ExitList {
 public:
  static ExitList& instance();

  // Says goodbye for the world if the process exits without having closed it. Other ranks then do
  // not take the end for a death.
  void add(std::weak_ptr<WorldImpl> world);
  // Keeps the world until the process exits, and then leaves the job. Returns false if there is no
  // memory.
  bool keep(std::shared_ptr<WorldImpl> world) noexcept;
  // Tells the other ranks of all worlds why this process ends.
  void tell_end(std::string_view why) noexcept;
  void tell_trouble(std::string_view what) noexcept;
  void say_goodbye() noexcept;
  // Compares the communicator's calls with the other ranks' if the process exits without having
  // closed it.
  void add(std::weak_ptr<call::Core> communicator);
  // Adds a communicator with calls on GPUs, which must end before the process does. Call it after
  // the driver has been started, so that the exit handlers run before the driver ends.
  void add_with_gpus(std::weak_ptr<call::Core> communicator);

  // Runs `end`, which throws nothing, in a separate thread. Returns false without running it if no
  // thread can be made or the process exits. `allowed` is the limit of the calls that `end` waits
  // for.
  bool run_apart(std::function<void()> end, Duration allowed) noexcept;
  // Waits for all threads of `run_apart`, not much longer than their limits. Returns true if all
  // have ended, and in one of these threads.
  bool await_apart() noexcept;

  // Lets the calls on GPUs of all communicators end, in success or failure, until their deadlines.
  // Then compares the calls, and reports errors that no caller has seen.
  void finish_calls() noexcept;
  // Prints an error that no caller can get any more, and makes the process exit with 1 instead of
  // 0.
  void report(const std::string& error) noexcept;
  // True if this process has reported anything.
  bool has_reported() const noexcept;

 private:
  ExitList() = default;
  // A list of communicators. Expired entries are removed from time to time.
  class Communicators {
   public:
    void add(std::weak_ptr<call::Core> communicator);
    std::vector<std::shared_ptr<call::Core>> living() const;

   private:
    std::vector<std::weak_ptr<call::Core>> all_;
    std::size_t cleared_at_ = 16;  // number of entries at which expired ones are removed
  };

  void call_each(const Communicators& communicators, void (*step)(call::Core&)) noexcept;
  void compare_calls() noexcept;
  // Leaves the kept worlds. `status` is the process's exit status.
  void leave_kept(int status) noexcept;
  void leave_all(int status) noexcept;
  std::vector<std::shared_ptr<WorldImpl>> living_worlds() const;
  // Notes that the process ends: `run_apart` makes no more threads.
  void exit() noexcept;
  // Returns `code`, or 1 in place of 0 if errors were reported.
  int status_of(int code) const noexcept;
  static void end_with_error(int code) noexcept;

  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<WorldImpl>> worlds_;
  std::vector<std::shared_ptr<WorldImpl>> kept_;
  Communicators communicators_;
  Communicators with_gpus_;
  int reported_by_ = 0;  // the pid of the process that reported errors
  int apart_ = 0;        // number of threads of `run_apart`
  int apart_of_ = 0;     // the pid of the process of these threads
  base::Deadline apart_until_ = base::Deadline::never();
  bool exits_ = false;
  std::condition_variable apart_ended_;
};

}  // namespace hocket::world
