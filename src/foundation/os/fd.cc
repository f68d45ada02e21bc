#include "foundation/os/fd.h"

#include <unistd.h>

namespace hocket::os {

void Fd::reset() noexcept {
  // Linux closes the descriptor even if close(2) returns EINTR, so it must not be closed again.
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace hocket::os
