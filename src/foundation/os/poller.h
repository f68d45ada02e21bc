// Waits for many descriptors at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "foundation/base/deadline.h"
#include "foundation/os/fd.h"

namespace hocket::os {

// A resource: an epoll instance. One thread at a time. It is level-triggered: each wait reports an
// event as long as it holds, so nothing must be re-armed. Throws SystemError.
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
    bool broken = false;  // both directions have ended; always reported
  };

  Poller();

  // `token` is returned with the events. A closed descriptor is removed automatically.
  void watch(int fd, std::uint64_t token, Interest interest);
  void change(int fd, std::uint64_t token, Interest interest);
  // Returns some of the ready descriptors, as soon as there is one. Empty at the deadline. The
  // result is valid until the next call.
  std::span<const Event> wait(base::Deadline deadline);

 private:
  static constexpr std::size_t kEvents = 256;

  Fd epoll_;
  std::array<Event, kEvents> events_;
};

}  // namespace hocket::os
