// What every stream socket needs: waiting with a deadline, whole transfers, addresses.
//
// All sockets are close-on-exec and nonblocking; SIGPIPE never fires; EINTR is tried again.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "foundation/base/deadline.h"
#include "foundation/os/fd.h"

namespace hocket::os {

enum class Readiness { kRead, kWrite };

// False when the deadline passed first. Errors and hang-ups count as ready: the next call tells.
// Aborted where the user interrupts it, as for all below that wait.
bool wait_ready(int fd, Readiness readiness, base::Deadline deadline);

// All bytes or an error: RendezvousError when time runs out or the peer has closed.
void send_all(const Fd& socket, std::span<const std::byte> bytes, base::Deadline deadline);
void receive_all(const Fd& socket, std::span<std::byte> bytes, base::Deadline deadline);

// A TCP address as text. A value.
struct HostPort {
  std::string host;
  int port = 0;
};
// "host:port" or "[v6]:port"; absent where it is neither.
std::optional<HostPort> parse_host_port(std::string_view text);
std::string to_string(const HostPort& address);
// True for "localhost", 127.0.0.0/8 and ::1, without asking a name server.
bool is_loopback(std::string_view host);
// True when the connection's own end is a loopback address: then so is the other.
bool is_loopback_connection(int socket);

// A listening socket. Throws SystemError naming the address.
Fd listen_tcp(const HostPort& address);
// The port that a socket is bound to; that of its peer.
int local_port(int socket);
int peer_port(int socket);
// One attempt at each of the host's addresses; TCP_NODELAY set. Throws SystemError with the last
// reason, RendezvousError at the deadline or where the name is unknown.
Fd connect_tcp(const HostPort& address, base::Deadline deadline);
// Small messages leave at once.
void set_no_delay(int socket) noexcept;
// What has come so far is acknowledged now and not some 40 ms later. It does not last.
void acknowledge_now(int socket) noexcept;
// Whether bytes that were sent have not been acknowledged so far.
bool has_unacknowledged(int socket) noexcept;
// A waiting connection, if there is one; an empty Fd where there is none. Throws SystemError.
Fd accept_pending(int listener);

}  // namespace hocket::os
