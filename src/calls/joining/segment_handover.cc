#include "calls/joining/segment_handover.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "foundation/base/interrupt.h"
#include "foundation/os/sockets/peer_credentials.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/error.h"

namespace hocket::joining {
namespace {

using base::Deadline;

// A client that sends nothing is dropped after kPatience. If other clients need its place, it is
// dropped after kLeastPatience.
constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::seconds kLeastPatience{2};
constexpr std::size_t kMostGuests = 256;
constexpr int kAcceptedAtOnce = 64;  // then the connected clients are served
constexpr std::chrono::milliseconds kAcceptPause{10};

// A connected process, and the part of a ticket that has come.
struct Guest {
  os::Fd socket;
  std::array<std::byte, sizeof(Ticket)> shown{};
  std::size_t came = 0;
  Deadline until = Deadline::in(kPatience);
  Deadline safe_until = Deadline::in(kLeastPatience);
  bool gone = false;

  // Returns true when the ticket is complete. A client that closes the connection or is late is
  // gone.
  bool listen() {
    const auto rest = std::span(shown).subspan(came);
    const ssize_t bytes = ::recv(socket.get(), rest.data(), rest.size(), MSG_DONTWAIT);
    const bool nothing_yet = bytes < 0 && (errno == EAGAIN || errno == EINTR);
    gone = nothing_yet ? until.has_passed() : bytes <= 0;
    if (bytes > 0) came += static_cast<std::size_t>(bytes);
    return came == shown.size();
  }
};

// A resource: the connected clients. No client can keep the others waiting.
class Reception {
 public:
  Reception(const os::Segment& segment, os::UnixListener& listener, const JobToken& token)
      : segment_(segment), listener_(listener), token_(token) {}

  // Waits a moment for data, and serves the ranks of `waiting` that have sent their tickets.
  void serve(std::set<int>& waiting, Deadline deadline) {
    wait(deadline);
    accept_some();
    for (Guest& guest : guests_) {
      if (!guest.listen()) continue;
      guest.gone = true;
      hand_over(guest, waiting, deadline);
    }
    std::erase_if(guests_, [](const Guest& guest) { return guest.gone; });
  }

 private:
  void wait(Deadline deadline) {
    const bool listens = accepts_from_.has_passed();
    if (!listens) deadline = std::min(deadline, accepts_from_);
    std::vector<pollfd> polls{{listens ? listener_.fd().get() : -1, POLLIN, 0}};
    for (const Guest& guest : guests_) {
      polls.push_back({guest.socket.get(), POLLIN, 0});
      deadline = std::min(deadline, guest.until);
    }
    ::poll(polls.data(), polls.size(), base::until_asked(deadline).poll_timeout_ms());
    base::throw_if_interrupted("the wait for another process");
  }

  void accept_some() {
    try {
      for (int i = 0; i < kAcceptedAtOnce; ++i) {
        if (guests_.size() >= kMostGuests && !drop_oldest()) return accept_later();
        os::Fd socket = os::accept_pending(listener_.fd().get());
        if (!socket) return;
        if (os::peer_credentials(socket).uid != geteuid()) continue;
        guests_.push_back({.socket = std::move(socket)});
      }
    } catch (const SystemError&) {
      // No descriptor is left for another client.
      drop_oldest();
      accept_later();
    }
  }

  void accept_later() { accepts_from_ = Deadline::in(kAcceptPause); }

  // Drops the oldest client to make room for another client. A rank that has just connected is
  // kept: its ticket is on the way, and it would not connect again.
  bool drop_oldest() {
    if (guests_.empty() || !guests_.front().safe_until.has_passed()) return false;
    guests_.erase(guests_.begin());
    return true;
  }

  void hand_over(const Guest& guest, std::set<int>& waiting, Deadline deadline) {
    Ticket ticket{};
    std::memcpy(&ticket, guest.shown.data(), sizeof ticket);
    if (ticket.token != token_ || !waiting.contains(ticket.rank)) return;
    const std::uint64_t bytes = segment_.size();
    try {
      os::send_fd(guest.socket, segment_.fd(), std::as_bytes(std::span(&bytes, 1)), deadline);
      waiting.erase(ticket.rank);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kAborted) throw;  // else the client has gone
    }
  }

  const os::Segment& segment_;
  os::UnixListener& listener_;
  const JobToken& token_;
  std::vector<Guest> guests_;
  Deadline accepts_from_ = Deadline::in(Duration::zero());
};

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
  Reception reception(segment, listener, token);
  while (!waiting.empty()) {
    reception.serve(waiting, deadline);
    if (waiting.empty() || !deadline.has_passed()) continue;
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

// True for errors that the leader of the host causes. Other errors are this process's own, such as
// a limit that it has reached.
static bool is_of_leader(const SystemError& error) {
  const int number = error.error_number();
  return number == ECONNREFUSED || number == ECONNRESET || number == EPIPE;
}

static RendezvousError not_fetched(const Ticket& ticket, int leader, const Error& error) {
  return RendezvousError(fmt::format(
      "rank {} got no shared memory from rank {}, which has it for this host ({}); see the "
      "output of rank {}",
      ticket.rank,
      leader,
      error.what(),
      leader));
}

std::shared_ptr<os::Segment> fetch(const std::string& name,
                                   const Ticket& ticket,
                                   int leader,
                                   Deadline deadline) {
  std::uint64_t bytes = 0;
  os::Fd fd;
  try {
    const os::Fd socket = os::connect_abstract(name, deadline);
    os::require_same_user(socket);
    os::send_all(socket, std::as_bytes(std::span(&ticket, 1)), deadline);
    fd = os::receive_fd(socket, std::as_writable_bytes(std::span(&bytes, 1)), deadline);
  } catch (const SystemError& error) {
    if (!is_of_leader(error)) throw;
    throw not_fetched(ticket, leader, error);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kAborted) throw;
    throw not_fetched(ticket, leader, error);
  }
  return std::make_shared<os::Segment>(os::Segment::map(std::move(fd), bytes));
}

}  // namespace hocket::joining
