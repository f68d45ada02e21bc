// Finds members of a group whose memory is being written to core files, for ranks that wait for
// them.
#pragma once

#include <chrono>
#include <functional>

#include "foundation/base/deadline.h"
#include "membership/control/group.h"

namespace hocket::failure {

// The kernel reports a crash with a core file only when the file has been written, which may take
// minutes. So waiting ranks check for themselves, now and then. A value; one thread.
class CoreDumps {
  static constexpr std::chrono::milliseconds kPause{200};

 public:
  explicit CoreDumps(control::GroupControl& group) noexcept
      : group_(group), next_(group.rank() + 1) {}

  // Checks a few of the `needed` members in turn, and records the deaths it finds. Cheap if it is
  // not time to check.
  void look(const std::function<bool(int member)>& needed);
  // A thread that sleeps now wakes up at this time and checks again.
  static base::Deadline next() noexcept { return base::Deadline::in(kPause); }

 private:
  control::GroupControl& group_;
  int next_;
  base::Deadline when_ = next();
};

}  // namespace hocket::failure
