// Lets a waiting rank find members of its group whose core dump the kernel is writing.
#pragma once

#include <chrono>
#include <functional>

#include "foundation/base/deadline.h"
#include "membership/control/group.h"

namespace hocket::failure {

// The kernel reports a crash with a core file only after the file is written, which may take
// minutes. So waiting ranks check for core dumps from time to time. A value. One thread uses it.
class CoreDumps {
  static constexpr std::chrono::milliseconds kPause{200};

 public:
  explicit CoreDumps(control::GroupControl& group) noexcept
      : group_(group), next_(group.rank() + 1) {}

  // Checks a few of the `needed` members, and others the next time. Records the deaths that it
  // finds. It is cheap if it is too early for a check.
  void look(const std::function<bool(int member)>& needed);
  // Returns the time at which a thread that sleeps now should wake up and check again.
  static base::Deadline next() noexcept { return base::Deadline::in(kPause); }

 private:
  control::GroupControl& group_;
  int next_;
  base::Deadline when_ = next();
};

}  // namespace hocket::failure
