#include "foundation/os/fd.h"

#include <unistd.h>

namespace hocket::os {

void Fd::reset() noexcept {
  // A failed close(2) is not repeated: Linux closes the descriptor even if it returns EINTR.
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace hocket::os
