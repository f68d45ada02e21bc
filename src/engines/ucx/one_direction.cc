#include "engines/ucx/one_direction.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

#include "foundation/os/imports.h"

namespace hocket::engines::ucx {
namespace {

constexpr std::uint32_t kBoth = EPOLLIN | EPOLLOUT;
constexpr std::uint32_t kBroken = EPOLLERR | EPOLLHUP;

// Returns a random choice. A fixed pattern could coincide with a pattern of the calls, for example
// if two workers call epoll_wait alternately. Then one direction would starve.
bool is_heads() noexcept {
  thread_local std::minstd_rand coin;
  constexpr auto kHalf = std::minstd_rand::max() / 2;
  return coin() > kHalf;
}

}  // namespace

int wait_for_one_direction(int set, epoll_event* events, int most, int timeout) noexcept {
  const int count = ::epoll_wait(set, events, most, timeout);
  if (count <= 0) return count;
  for (epoll_event& event : std::span(events, static_cast<std::size_t>(count))) {
    if ((event.events & kBoth) != kBoth) continue;
    const bool receives = (event.events & kBroken) != 0 || is_heads();
    event.events &= receives ? ~std::uint32_t{EPOLLOUT} : ~std::uint32_t{EPOLLIN};
  }
  return count;
}

bool handle_one_direction(const void* in_ucs) noexcept {
  return os::replace_import(
      in_ucs, "epoll_wait", reinterpret_cast<const void*>(&wait_for_one_direction));
}

}  // namespace hocket::engines::ucx
