// The guardian is the ranks' parent process. It starts them, and kills all their descendants when
// the job is over, however it ends.
//
//     launcher ── guardian ─┬─ rank 0 ── whatever rank 0 starts
//                           └─ rank 1 ...
//
// A process that was killed by SIGKILL cannot clean up, so a second one watches. When the launcher
// is gone, its end of the socket closes, and the guardian kills its descendants. As a subreaper it
// has even those whose parents have ended. When the guardian is gone, the kernel kills the ranks
// (parent-death signal). The launcher, a subreaper too, kills the rest. The guardian has one
// thread, so it may fork; the launcher also has the store's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "interfaces/cli/fd.h"
#include "interfaces/cli/run/launch_plan.h"

namespace hocket::cli {

// A report from the guardian to the launcher, one a packet.
struct GuardianReport {
  enum class Kind : std::uint8_t {
    kStarted,     // value: the rank's pid
    kNotStarted,  // value: errno. Nothing more comes of this rank
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
  // Forks. Call it while the process has one thread. `in_child` closes, in the guardian, the
  // descriptors that belong to the launcher alone. This closes the plan's in the launcher.
  Guardian(LaunchPlan plan, const std::function<void()>& in_child);

  // Starts the ranks; `store` and `size` become HOCKET_STORE and HOCKET_SIZE.
  void start(const std::string& store, int size);
  // Sends a signal to every living rank and its process group. `from_terminal`: leaves out ranks in
  // the foreground group, which have already got it.
  void signal(int number, bool from_terminal = false);

  int fd() const noexcept { return socket_.get(); }  // readable when there is a report
  pid_t pid() const noexcept { return pid_; }
  // The next report, if there is one. Throws SystemError when the guardian died.
  std::optional<GuardianReport> next_report();
  // Waits for its end, after kAllEnded or its death.
  void reap() noexcept;

 private:
  Fd socket_;
  pid_t pid_ = -1;
};

}  // namespace hocket::cli
