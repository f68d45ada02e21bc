// Members of a group whose memory is being written to core files, as seen by who waits for them.
#pragma once

#include <chrono>
#include <functional>

#include "foundation/base/deadline.h"
#include "membership/control/group.h"

namespace hocket::failure {

// A crash that leaves a core file is told by the kernel when the file has been written, which may
// take minutes. So those who wait look for themselves, now and then. A value; one thread.
class CoreDumps {
  static constexpr std::chrono::milliseconds kPause{200};

 public:
  explicit CoreDumps(control::GroupControl& group) noexcept
      : group_(group), next_(group.rank() + 1) {}

  // Looks at a few of the members that are `needed`, in turn, and records the deaths it finds. Cheap
  // where it is not time.
  void look(const std::function<bool(int member)>& needed);
  // By when who sleeps now is to wake up and look again.
  static base::Deadline next() noexcept { return base::Deadline::in(kPause); }

 private:
  control::GroupControl& group_;
  int next_;
  base::Deadline when_ = next();
};

}  // namespace hocket::failure
