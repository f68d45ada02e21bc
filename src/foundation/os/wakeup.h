// Wakes a thread that waits for descriptors, from another thread.
#pragma once

#include "foundation/base/deadline.h"
#include "foundation/os/fd.h"

namespace hocket::os {

// A resource: a pipe. Unlike an eventfd, every container's profile allows it. Any thread may call
// `notify`.
class Wakeup {
 public:
  Wakeup();

  void notify() noexcept;
  // Returns a descriptor for threads that call poll(2) themselves. It is readable after `notify`,
  // until `take`.
  int fd() const noexcept { return read_.get(); }
  void take() noexcept;

  // The descriptor that a wait is for.
  struct Interest {
    int fd = -1;
    bool write = false;  // wait until it is writable, or readable
  };
  // Waits until the descriptor is ready or broken, `notify` is called, or the deadline passes.
  // Consumes all notifications.
  void wait(Interest interest, base::Deadline deadline);

 private:
  Fd read_, write_;
};

}  // namespace hocket::os
