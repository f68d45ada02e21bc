// How the shared memory of a host gets from its first rank to the others.
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

// Proves to a host's first rank that whoever connects is of this job. Travels through the store.
using JobToken = std::array<std::byte, 16>;
JobToken random_job_token();

// What a rank shows to get the segment: its bytes are what it sends.
struct Ticket {
  JobToken token;
  std::int32_t rank;
};

// Hands `segment` to the ranks `waiting`, whoever else may connect. Throws RendezvousError naming
// those who did not come in time.
void hand_out(const os::Segment& segment,
              os::UnixListener& listener,
              const JobToken& token,
              std::set<int> waiting,
              base::Deadline deadline);

// Gets it from rank `leader`, who listens at `name`. Throws RendezvousError naming it, and
// SystemError where it cannot be mapped.
std::shared_ptr<os::Segment> fetch(const std::string& name,
                                   const Ticket& ticket,
                                   int leader,
                                   base::Deadline deadline);

}  // namespace hocket::joining
