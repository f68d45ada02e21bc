// What hocket does as the process ends.
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

// A resource, the process's one, like exit itself; any thread. Nothing of it concerns a child that
// has inherited what it lists.
class ExitList {
 public:
  static ExitList& instance();

  // Takes leave of it when the process exits without having closed it, so that others can tell
  // that from a death.
  void add(std::weak_ptr<WorldImpl> world);
  // Has it take leave as the process exits, and lets go of it then. False: there is no memory.
  bool keep(std::shared_ptr<WorldImpl> world) noexcept;
  // Has all worlds say why they end.
  void tell_end(std::string_view why) noexcept;
  // Compares its calls with those of others when the process exits without having closed it.
  void add(std::weak_ptr<call::Core> communicator);
  // It makes calls on GPUs: these end before the process does. To be called when the driver has
  // been started, whose own end comes earlier otherwise.
  void add_with_gpus(std::weak_ptr<call::Core> communicator);

  // Runs `end`, which throws nothing, in a thread of its own. False: it has not run, as there are
  // no more threads, or the process exits. `allowed`: for the calls that it waits for.
  bool run_apart(std::function<void()> end, Duration allowed) noexcept;
  // Waits for all that run apart, and not much longer than they are allowed; not in one of them.
  // Whether they have ended.
  bool await_apart() noexcept;

  // Lets the calls on GPUs of all communicators end, well or not, until their deadlines, compares
  // what was called, and reports what nobody has heard of.
  void finish_calls() noexcept;
  // Says on standard error what nobody was left to be told, and has the process exit with 1 where
  // it would with 0.
  void report(const std::string& error) noexcept;
  // Whether this process has reported anything.
  bool has_reported() const noexcept;

 private:
  ExitList() = default;
  // The entries of those that have ended are removed now and then.
  class Communicators {
   public:
    void add(std::weak_ptr<call::Core> communicator);
    std::vector<std::shared_ptr<call::Core>> living() const;

   private:
    std::vector<std::weak_ptr<call::Core>> all_;
    std::size_t cleared_at_ = 16;  // how many of them there are then
  };

  void call_each(const Communicators& communicators, void (call::Core::*step)()) noexcept;
  void compare_calls() noexcept;
  // `status`: that the process exits with. The first are worlds that were kept.
  void leave_kept(int status) noexcept;
  void leave_all(int status) noexcept;
  std::vector<std::shared_ptr<WorldImpl>> living_worlds() const;
  void exit() noexcept;  // is under way
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
