// Who finds out how a rank ended, so that errors can name the signal.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "foundation/base/deadline.h"
#include "foundation/os/process/process_exit.h"
#include "membership/control/host.h"

namespace hocket::failure {

// A resource: descriptors of the next few processes of the host, each of which so has a few
// witnesses; what one learns it tells all. Thread-safe.
class Witness {
 public:
  explicit Witness(std::shared_ptr<control::HostControl> host) : host_(std::move(host)) {}

  // Looks how those ended who have died. Cheap where nobody has; never waits. Returns when to look
  // again; never, where all is known.
  base::Deadline look();

  // How `rank`, which died, ended, as waitpid says. Looks at once; waits until 2 ms after its death
  // was recorded, so that nobody hears of it late, and until 50 ms while it is seen to be ending.
  std::optional<int> await_end(int rank);
  // The same of one that left in good order: the status that its process exits with, where that is
  // seen within 50 ms after it left.
  std::optional<int> await_exit(int rank);
  // Whether the process of `rank`, which is on this host, is seen to run.
  bool still_runs(int rank) const noexcept;

 private:
  struct Watched {
    int rank;
    os::ProcessExit process;
  };
  void meet();
  // False when there is nothing more to learn.
  bool look_at(Watched& watched);

  const std::shared_ptr<control::HostControl> host_;
  std::mutex mutex_;  // guards all below
  bool met_ = false;
  std::vector<Watched> watched_;
};

}  // namespace hocket::failure
