// Finds out how a rank's process ended, so that errors can name the signal.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "foundation/base/deadline.h"
#include "foundation/os/process/process_exit.h"
#include "membership/control/host.h"

namespace hocket::failure {

// A resource: descriptors of the next few processes of the host. So each process has a few
// witnesses; each tells all ranks. Thread-safe.
class Witness {
 public:
  explicit Witness(std::shared_ptr<control::HostControl> host) : host_(std::move(host)) {}

  // Finds out how dead processes ended. Never waits; cheap if there are none. Returns the time of
  // the next look; never, if all is known.
  base::Deadline look();

  // The way in which the dead `rank` ended, as waitpid has it. Looks at once, and waits until 2 ms
  // after the recorded death, so that errors are not late. While the process is seen to be dying,
  // it waits until 50 ms.
  std::optional<int> await_end(int rank);
  // The same for a rank that left in good order: its process's exit status, if that is seen within
  // 50 ms after it left.
  std::optional<int> await_exit(int rank);
  // True if the process of `rank`, which is on this host, is seen to run.
  bool still_runs(int rank) const noexcept;

 private:
  struct Watched {
    int rank;
    os::ProcessExit process;
  };
  void meet();
  // False when there is nothing left to learn.
  bool look_at(Watched& watched);

  const std::shared_ptr<control::HostControl> host_;
  std::mutex mutex_;  // guards all below
  bool met_ = false;
  std::vector<Watched> watched_;
};

}  // namespace hocket::failure
