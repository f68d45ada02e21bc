// An object that the progress thread looks at from time to time.
#pragma once

#include "foundation/base/deadline.h"

namespace hocket::call {

class PeriodicTask {
 public:
  virtual ~PeriodicTask() = default;
  // Looks, and returns the time of the next look. Also called at once when a peer has ended. Must
  // not wait.
  virtual base::Deadline tick() noexcept = 0;
};

}  // namespace hocket::call
