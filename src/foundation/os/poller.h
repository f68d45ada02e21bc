// Waiting for many descriptors at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "foundation/base/deadline.h"
#include "foundation/os/fd.h"

namespace hocket::os {

// A resource: an epoll instance. One thread at a time. What is watched is told again by each wait
// for as long as it holds, so that nothing has to be armed twice. Throws SystemError.
class Poller {
 public:
  struct Interest {
    bool read = false;
    bool write = false;
    bool operator==(const Interest&) const = default;
  };
  struct Event {
    std::uint64_t token = 0;
    bool read = false;
    bool write = false;
    bool broken = false;  // both directions are at their end; told whatever the interest
  };

  Poller();

  // `token` comes back with what happens. A closed descriptor is forgotten by itself.
  void watch(int fd, std::uint64_t token, Interest interest);
  void change(int fd, std::uint64_t token, Interest interest);
  // Some of what is ready, as soon as anything is; nothing at the deadline. Valid until the next.
  std::span<const Event> wait(base::Deadline deadline);

 private:
  static constexpr std::size_t kEvents = 256;

  Fd epoll_;
  std::array<Event, kEvents> events_;
};

}  // namespace hocket::os
