#include "foundation/os/fd.h"

#include <unistd.h>

namespace hocket::os {

void Fd::reset() noexcept {
  // Linux has closed the descriptor even where close(2) says EINTR: never a second time.
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace hocket::os
