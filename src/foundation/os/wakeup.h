// Wakes a thread that waits for descriptors.
#pragma once

#include "foundation/base/deadline.h"
#include "foundation/os/fd.h"

namespace hocket::os {

// A resource: a pipe, which every container's profile allows. Any thread may call `notify`.
class Wakeup {
 public:
  Wakeup();

  void notify() noexcept;
  // For threads that poll by themselves: readable after `notify`, until `take`.
  int fd() const noexcept { return read_.get(); }
  void take() noexcept;

  // The descriptor of one wait.
  struct Interest {
    int fd = -1;
    bool write = false;  // in addition to reading
  };
  // Returns when the descriptor is ready or broken, after a `notify`, or at the deadline. It
  // consumes all notifications.
  void wait(Interest interest, base::Deadline deadline);

 private:
  Fd read_, write_;
};

}  // namespace hocket::os
