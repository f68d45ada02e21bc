// Finds out how a rank's process has ended, so that errors can name the signal.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "foundation/base/deadline.h"
#include "foundation/os/process/process_exit.h"
#include "membership/control/host/liveness.h"

namespace hocket::failure {

// One of the witnesses of other ranks' deaths. A resource: descriptors of the processes of the few
// ranks that follow this rank on the host. So each process has a few witnesses; each of them
// records the end for all ranks. Any thread.
class Witness {
 public:
  explicit Witness(std::shared_ptr<control::Liveness> liveness) : liveness_(std::move(liveness)) {}

  // Finds out how dead processes have ended. Never waits, and is cheap if there are none. Returns
  // the time of the next look; never, if everything is known.
  base::Deadline look();

  // Returns how the dead `rank` has ended, as a status of waitpid. Absent: it is unknown. It waits
  // until 2 ms after the recorded death, so that errors are not late. If the process is certain to
  // end but has not yet, it waits until 50 ms.
  std::optional<int> await_end(int rank);
  // Returns the exit status of the process of a rank that left in good order. Absent if it does not
  // become known within 50 ms after the rank has left.
  std::optional<int> await_exit(int rank);
  // Returns whether the process of `rank`, on this host, still runs.
  bool still_runs(int rank) const noexcept;

 private:
  struct Watched {
    int rank;
    os::ProcessExit process;
  };
  void meet();
  // Looks at one process. Returns false if there is nothing more to find out.
  bool look_at(Watched& watched);

  const std::shared_ptr<control::Liveness> liveness_;
  std::mutex mutex_;  // guards the members below
  bool met_ = false;
  std::vector<Watched> watched_;
};

}  // namespace hocket::failure
