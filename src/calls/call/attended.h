// What the progress thread looks at from time to time.
#pragma once

#include "foundation/base/deadline.h"

namespace hocket::call {

class Attended {
 public:
  virtual ~Attended() = default;
  // Looks; when to look again. Also called when a peer has ended, at once. Must not wait.
  virtual base::Deadline tick() noexcept = 0;
};

}  // namespace hocket::call
