#include "foundation/os/process/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

namespace hocket::os {

void occupy_standard_descriptors() noexcept {
  for (;;) {  // open returns the lowest free number
    const int opened = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (opened < 0) return;
    if (opened <= STDERR_FILENO) continue;
    ::close(opened);
    return;
  }
}

}  // namespace hocket::os
