// Who finds out how a rank ended, so that errors can name the signal.
#pragma once

#include <optional>
#include <vector>

#include "base/deadline.h"
#include "control/host.h"
#include "os/process_exit.h"

namespace hocket::comm {

// A resource: descriptors of the next few processes of the host, each of which so has a few
// witnesses; what one learns it tells all. One thread: the progress thread.
class Witness {
 public:
  explicit Witness(control::HostControl& host) : host_(host) {}

  // Looks how those ended who have died. Cheap where nobody has. Never waits.
  void look();
  // When to look again; never, where all is known.
  base::Deadline next() const noexcept { return next_; }

 private:
  struct Watched {
    int rank;
    os::ProcessExit process;
    std::optional<base::Deadline> give_up;  // from its death on
  };
  void meet();
  // False when there is nothing more to learn.
  bool look_at(Watched& watched);

  control::HostControl& host_;
  bool met_ = false;
  std::vector<Watched> watched_;
  base::Deadline next_ = base::Deadline::never();
};

}  // namespace hocket::comm
