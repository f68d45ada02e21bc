// Waking a thread that waits for descriptors.
#pragma once

#include "foundation/base/deadline.h"
#include "foundation/os/fd.h"

namespace hocket::os {

// A resource: a pipe, which every container's profile allows. `notify` from any thread.
class Wakeup {
 public:
  Wakeup();

  void notify() noexcept;
  // For whoever polls by itself: readable once notified, until `take`.
  int fd() const noexcept { return read_.get(); }
  void take() noexcept;

  // What one wait is about.
  struct Interest {
    int fd = -1;
    bool write = false;  // beside reading
  };
  // Returns when the descriptor is ready (or broken), when somebody has notified, or at the
  // deadline, having taken all notifications.
  void wait(Interest interest, base::Deadline deadline);

 private:
  Fd read_, write_;
};

}  // namespace hocket::os
