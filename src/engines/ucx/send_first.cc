#include "engines/ucx/send_first.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "foundation/os/imports.h"

namespace hocket::engines::ucx {
namespace {

constexpr std::uint32_t kOut = EPOLLOUT;
constexpr std::uint32_t kBoth = EPOLLIN | EPOLLOUT;
constexpr std::uint32_t kBroken = EPOLLERR | EPOLLHUP;

bool is_both(const epoll_event& event) noexcept { return (event.events & kBoth) == kBoth; }

}  // namespace

// At most half of the room is asked for, so that all events fit when each is two.
int wait_send_first(int set, epoll_event* events, int most, int timeout) noexcept {
  const int count = ::epoll_wait(set, events, most > 1 ? most / 2 : most, timeout);
  if (count <= 0) return count;
  for (epoll_event& event : std::span(events, static_cast<std::size_t>(count))) {
    if (is_both(event) && (event.events & kBroken) != 0) event.events &= ~kOut;
  }
  if (most < 2) return count;
  const auto both = std::count_if(events, events + count, is_both);
  epoll_event* to = events + count + both;
  for (const epoll_event* from = events + count; from != events;) {
    const epoll_event event = *--from;
    *--to = event;
    if (!is_both(event)) continue;
    to->events &= ~kOut;
    *--to = {.events = kOut, .data = event.data};
  }
  return count + static_cast<int>(both);
}

bool send_first(const void* in_ucs) noexcept {
  return os::replace_import(in_ucs, "epoll_wait", reinterpret_cast<const void*>(&wait_send_first));
}

}  // namespace hocket::engines::ucx
