// Waits for events of many descriptors at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "foundation/base/deadline.h"
#include "foundation/os/fd.h"

namespace hocket::os {

// A resource: an epoll instance. One thread at a time uses it. It is level-triggered: each wait
// reports an event again while its condition holds, so no descriptor has to be armed anew. Throws
// SystemError.
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
    bool broken = false;  // the connection has ended or failed; reported without being asked for
  };

  Poller();

  // Adds a descriptor. `token` comes back with its events. A descriptor is removed automatically
  // when it is closed.
  void watch(int fd, std::uint64_t token, Interest interest);
  void change(int fd, std::uint64_t token, Interest interest);
  // Waits until some descriptors are ready, and returns up to 256 of their events. Empty at the
  // deadline or after a signal. The result is valid until the next call.
  std::span<const Event> wait(base::Deadline deadline);

 private:
  static constexpr std::size_t kEvents = 256;

  Fd epoll_;
  std::array<Event, kEvents> events_;
};

}  // namespace hocket::os
