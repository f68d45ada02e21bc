#include "foundation/os/poller.h"

#include <sys/epoll.h>

#include <cerrno>

#include "hocket/error.h"

namespace hocket::os {
namespace {

void control(int epoll, int operation, int fd, std::uint64_t token, Poller::Interest interest) {
  epoll_event event{};
  if (interest.read) event.events |= EPOLLIN;
  if (interest.write) event.events |= EPOLLOUT;
  event.data.u64 = token;
  if (::epoll_ctl(epoll, operation, fd, &event) != 0) {
    throw SystemError("cannot watch a descriptor", errno);
  }
}

}  // namespace

Poller::Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw SystemError("cannot make an epoll descriptor", errno);
}

void Poller::watch(int fd, std::uint64_t token, Interest interest) {
  control(epoll_.get(), EPOLL_CTL_ADD, fd, token, interest);
}

void Poller::change(int fd, std::uint64_t token, Interest interest) {
  control(epoll_.get(), EPOLL_CTL_MOD, fd, token, interest);
}

std::span<const Poller::Event> Poller::wait(base::Deadline deadline) {
  std::array<epoll_event, kEvents> ready;
  int count = ::epoll_wait(epoll_.get(), ready.data(), kEvents, deadline.poll_timeout_ms());
  if (count < 0 && errno != EINTR) throw SystemError("cannot wait for descriptors", errno);
  if (count < 0) count = 0;
  const auto some = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < some; ++i) {
    const std::uint32_t what = ready[i].events;
    events_[i] = {.token = ready[i].data.u64,
                  .read = (what & EPOLLIN) != 0,
                  .write = (what & EPOLLOUT) != 0,
                  .broken = (what & (EPOLLERR | EPOLLHUP)) != 0};
  }
  return std::span<const Event>(events_).first(some);
}

}  // namespace hocket::os
