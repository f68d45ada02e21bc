#include "foundation/os/wakeup.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "hocket/error.h"

namespace hocket::os {

Wakeup::Wakeup() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw SystemError("cannot make a pipe", errno);
  }
  read_ = Fd(ends[0]);
  write_ = Fd(ends[1]);
}

void Wakeup::notify() noexcept {
  const char note = 0;
  // The write fails only if the pipe is full. The waiter wakes up in this case too.
  [[maybe_unused]] const auto written = ::write(write_.get(), &note, sizeof note);
}

void Wakeup::wait(Interest interest, base::Deadline deadline) {
  pollfd waited[] = {
      {.fd = interest.fd,
       .events = static_cast<short>(interest.write ? POLLIN | POLLOUT : POLLIN),
       .revents = 0},
      {.fd = read_.get(), .events = POLLIN, .revents = 0},
  };
  while (::poll(waited, 2, deadline.poll_timeout_ms()) < 0) {
    if (errno != EINTR) throw SystemError("cannot wait for a socket", errno);
    if (deadline.has_passed()) return;
  }
  take();
}

void Wakeup::take() noexcept {
  std::array<char, 256> notes;
  while (::read(read_.get(), notes.data(), notes.size()) == static_cast<ssize_t>(notes.size())) {
  }
}

}  // namespace hocket::os
