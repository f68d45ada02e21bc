#include "os/wakeup.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "hocket/error.h"

namespace hocket::os {

Wakeup::Wakeup() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw SystemError("cannot make an eventfd", errno);
}

void Wakeup::notify() noexcept {
  const std::uint64_t one = 1;
  // Fails only where the count is at its top: then the waiter will wake anyway.
  [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
}

void Wakeup::wait(Interest interest, base::Deadline deadline) {
  pollfd waited[] = {
      {.fd = interest.fd,
       .events = static_cast<short>(interest.write ? POLLIN | POLLOUT : POLLIN),
       .revents = 0},
      {.fd = event_.get(), .events = POLLIN, .revents = 0},
  };
  while (::poll(waited, 2, deadline.poll_timeout_ms()) < 0) {
    if (errno != EINTR) throw SystemError("cannot wait for a socket", errno);
    if (deadline.has_passed()) return;
  }
  take();
}

void Wakeup::take() noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(event_.get(), &count, sizeof count);
}

}  // namespace hocket::os
