#include "comm/segment_handover.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <span>

#include "hocket/error.h"
#include "os/peer_credentials.h"
#include "os/socket.h"

namespace hocket::comm {
namespace {

using base::Deadline;

// Who connects and says nothing keeps the others waiting.
constexpr std::chrono::seconds kPatience{2};

// Gives the segment to whoever is at the other end, if it is one of `waiting`; its rank, or -1.
int serve(const os::Fd& peer,
          const os::Segment& segment,
          const JobToken& token,
          const std::set<int>& waiting,
          Deadline deadline) {
  if (os::peer_credentials(peer).uid != getuid()) return -1;
  const std::uint64_t bytes = segment.size();
  Ticket shown{};
  try {
    os::receive_all(peer,
                    std::as_writable_bytes(std::span(&shown, 1)),
                    std::min(deadline, Deadline::in(kPatience)));
    if (shown.token != token || !waiting.contains(shown.rank)) return -1;
    os::send_fd(peer, segment.fd(), std::as_bytes(std::span(&bytes, 1)), deadline);
    return shown.rank;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kAborted) throw;
    return -1;  // whoever it was, it is not of this job, or has gone
  }
}

}  // namespace

JobToken random_job_token() {
  JobToken token;
  std::random_device source;
  for (auto& byte : token) byte = static_cast<std::byte>(source() & 0xff);
  return token;
}

void hand_out(const os::Segment& segment,
              os::UnixListener& listener,
              const JobToken& token,
              std::set<int> waiting,
              Deadline deadline) {
  while (!waiting.empty()) {
    if (os::wait_ready(listener.fd().get(), os::Readiness::kRead, deadline)) {
      waiting.erase(serve(listener.accept(deadline), segment, token, waiting, deadline));
      continue;
    }
    const bool one = waiting.size() == 1;
    throw RendezvousError(fmt::format(
        "{} {} met the others and did not come for this host's shared memory in time; see {} "
        "output, and whether {} stopped",
        one ? "rank" : "ranks",
        fmt::join(waiting, ", "),
        one ? "its" : "their",
        one ? "it was" : "they were"));
  }
}

std::shared_ptr<os::Segment> fetch(const std::string& name,
                                   const Ticket& ticket,
                                   int leader,
                                   Deadline deadline) {
  std::uint64_t bytes = 0;
  os::Fd fd;
  try {
    const os::Fd socket = os::connect_abstract(name, deadline);
    if (os::peer_credentials(socket).uid != getuid()) {
      throw RendezvousError("another user's process answers");
    }
    os::send_all(socket, std::as_bytes(std::span(&ticket, 1)), deadline);
    fd = os::receive_fd(socket, std::as_writable_bytes(std::span(&bytes, 1)), deadline);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kAborted) throw;
    throw RendezvousError(fmt::format(
        "rank {} got no shared memory from rank {}, which has it for this host ({}); see the "
        "output of rank {}",
        ticket.rank,
        leader,
        error.what(),
        leader));
  }
  return std::make_shared<os::Segment>(os::Segment::map(std::move(fd), bytes));
}

}  // namespace hocket::comm
