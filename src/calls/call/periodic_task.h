// An object that the progress thread looks at from time to time.
#pragma once

#include "foundation/base/deadline.h"

namespace hocket::call {

class PeriodicTask {
 public:
  virtual ~PeriodicTask() = default;
  // Makes one look, and returns the time of the next look. Also called as soon as a peer has ended.
  // Must not block.
  virtual base::Deadline tick() noexcept = 0;
};

}  // namespace hocket::call
