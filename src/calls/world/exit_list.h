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

// A resource, one for the process, like exit itself; any thread. A forked child ignores the entries
// that it inherited.
class ExitList {
 public:
  static ExitList& instance();

  // Says goodbye for the world if the process exits without having closed it, so that others can
  // tell this from a death.
  void add(std::weak_ptr<WorldImpl> world);
  // Keeps the world until the process exits, and says goodbye then. False: there is no memory.
  bool keep(std::shared_ptr<WorldImpl> world) noexcept;
  // Makes all worlds tell why they end.
  void tell_end(std::string_view why) noexcept;
  // Compares the communicator's calls with the other ranks' if the process exits without having
  // closed it.
  void add(std::weak_ptr<call::Core> communicator);
  // For a communicator with calls on GPUs: these end before the process does. Call it when the
  // driver has been started, so that the handlers run before the driver's end.
  void add_with_gpus(std::weak_ptr<call::Core> communicator);

  // Runs `end`, which throws nothing, in a separate thread. Returns false without running it if no
  // thread can be made or the process exits. `allowed` is the limit of the calls that it waits for.
  bool run_apart(std::function<void()> end, Duration allowed) noexcept;
  // Waits for all such threads, not much longer than their limits; do not call it in one of them.
  // Returns true if all have ended.
  bool await_apart() noexcept;

  // Lets the calls on GPUs of all communicators end, in success or failure, until their deadlines.
  // Then compares the calls, and reports errors that no caller has seen.
  void finish_calls() noexcept;
  // Prints an error that no caller is left to get, and makes the process exit with 1 instead of 0.
  void report(const std::string& error) noexcept;
  // True if this process has reported anything.
  bool has_reported() const noexcept;

 private:
  ExitList() = default;
  // Entries that have expired are removed now and then.
  class Communicators {
   public:
    void add(std::weak_ptr<call::Core> communicator);
    std::vector<std::shared_ptr<call::Core>> living() const;

   private:
    std::vector<std::weak_ptr<call::Core>> all_;
    std::size_t cleared_at_ = 16;  // number of entries at which they are removed
  };

  void call_each(const Communicators& communicators, void (call::Core::*step)()) noexcept;
  void compare_calls() noexcept;
  // `status` is the process's exit status. The first are worlds that were kept.
  void leave_kept(int status) noexcept;
  void leave_all(int status) noexcept;
  std::vector<std::shared_ptr<WorldImpl>> living_worlds() const;
  void exit() noexcept;                    // is under way
  int status_of(int code) const noexcept;  // that the process exits with instead
  static void end_with_error(int code) noexcept;

  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<WorldImpl>> worlds_;
  std::vector<std::shared_ptr<WorldImpl>> kept_;
  Communicators communicators_;
  Communicators with_gpus_;
  int reported_by_ = 0;  // a process
  int apart_ = 0;        // threads
  int apart_of_ = 0;     // whose: a process
  base::Deadline apart_until_ = base::Deadline::never();
  bool exits_ = false;
  std::condition_variable apart_ended_;
};

}  // namespace hocket::world
