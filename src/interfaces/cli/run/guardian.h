// The guardian is the ranks' parent process. It starts them, and kills all their descendants when
// the job is over, however it ends.
//
//     launcher ── guardian ─┬─ rank 0 ── whatever rank 0 starts
//                           └─ rank 1 ...
//
// The launcher may be killed by SIGKILL and cannot clean up then, so a second process watches it.
// When the launcher is gone, its end of the socket closes, and the guardian kills its descendants.
// It is a subreaper, so these include processes whose parents have ended. When the guardian is
// gone, the kernel kills the ranks (parent-death signal), and the launcher, also a subreaper, kills
// the rest. The guardian has one thread, so it may fork; the launcher also has the store's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "interfaces/cli/fd.h"
#include "interfaces/cli/run/launch_plan.h"

namespace hocket::cli {

// A report from the guardian to the launcher, one in each packet.
struct GuardianReport {
  enum class Kind : std::uint8_t {
    kStarted,     // value: the rank's pid
    kNotStarted,  // value: errno. No other report about this rank follows
    kEnding,      // its end has begun, perhaps before that of the rank reported next
    kEnded,       // value: the status that waitpid gave
    kAllEnded,    // value: processes left by the ranks that were killed. The last report
  };
  Kind kind;
  int rank;
  int value;
};

// A resource: the launcher's link to its guardian. One thread.
class Guardian {
 public:
  // Forks. Call it while the process has one thread. `in_child` runs in the guardian and closes the
  // launcher's descriptors there. The constructor closes the plan's descriptors in the launcher.
  Guardian(LaunchPlan plan, const std::function<void()>& in_child);

  // Starts the ranks; `store` and `size` become HOCKET_STORE and HOCKET_SIZE.
  void start(const std::string& store, int size);
  // Sends a signal to every living rank and its process group. `from_terminal` excludes ranks in
  // the foreground group, which the terminal has already signalled.
  void signal(int number, bool from_terminal = false);

  int fd() const noexcept { return socket_.get(); }  // readable when there is a report
  pid_t pid() const noexcept { return pid_; }
  // The next report, if there is one. Throws SystemError when the guardian died.
  std::optional<GuardianReport> next_report();
  // Waits for the guardian's end. Call it after kAllEnded, or after its death.
  void reap() noexcept;

 private:
  Fd socket_;
  pid_t pid_ = -1;
};

}  // namespace hocket::cli
