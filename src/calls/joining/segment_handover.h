// Passes a host's shared memory from its first rank to the other ranks of the host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "foundation/base/deadline.h"
#include "foundation/os/segment.h"
#include "foundation/os/sockets/unix_socket.h"

namespace hocket::joining {

// Proves to a host's first rank that a client belongs to this job. Travels through the store.
using JobToken = std::array<std::byte, 16>;
JobToken random_job_token();

// A rank sends these bytes to get the segment.
struct Ticket {
  JobToken token;
  std::int32_t rank;
};

// Passes `segment` to the ranks in `waiting`; other clients get nothing. Throws RendezvousError
// that names ranks which did not come in time.
void hand_out(const os::Segment& segment,
              os::UnixListener& listener,
              const JobToken& token,
              std::set<int> waiting,
              base::Deadline deadline);

// Gets the segment from rank `leader`, which listens at `name`. Throws RendezvousError that names
// the rank, and SystemError if the segment cannot be mapped.
std::shared_ptr<os::Segment> fetch(const std::string& name,
                                   const Ticket& ticket,
                                   int leader,
                                   base::Deadline deadline);

}  // namespace hocket::joining
