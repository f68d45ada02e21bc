// Functions for stream sockets: waits with a deadline, complete transfers, addresses.
//
// All sockets are close-on-exec and nonblocking. SIGPIPE never occurs. The functions retry after
// EINTR. Those that wait throw Aborted if the user interrupts them.
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

// Waits until a descriptor is ready. Returns false if the deadline passes first. An error or a
// hang-up counts as ready; the next call on the descriptor reports it.
bool wait_ready(int fd, Readiness readiness, base::Deadline deadline);

// Send or receive all bytes. Throw RendezvousError if the deadline passes or the peer has closed
// the connection.
void send_all(const Fd& socket, std::span<const std::byte> bytes, base::Deadline deadline);
void receive_all(const Fd& socket, std::span<std::byte> bytes, base::Deadline deadline);

// A host name or numeric address, and a TCP port. A value.
struct HostPort {
  std::string host;
  int port = 0;
};
// Parses "host:port" or "[v6]:port". Absent for any other text.
std::optional<HostPort> parse_host_port(std::string_view text);
std::string to_string(const HostPort& address);
// Returns true for "localhost", 127.0.0.0/8 and ::1. It asks no name server.
bool is_loopback(std::string_view host);
// Returns true if the connection's local address is a loopback address. The peer's address then is
// one too.
bool is_loopback_connection(int socket);

// Makes a listening socket. Throws SystemError, which names the address.
Fd listen_tcp(const HostPort& address);
// Return the port of a socket, and the port of its peer.
int local_port(int socket);
int peer_port(int socket);
// Returns the peer's address, without its port. Empty if the socket is not connected.
std::string peer_host(int socket);
// Connects to a host. It tries each of the host's addresses once, and sets TCP_NODELAY. Throws
// SystemError with the last error, which is ETIMEDOUT at the deadline. Throws RendezvousError for
// an unknown name.
Fd connect_tcp(const HostPort& address, base::Deadline deadline);
// Starts to connect to a numeric address, and does not wait. When the socket is writable, the
// attempt has ended; `connect_error` has the result. Throws SystemError, or RendezvousError if the
// address is a name.
Fd begin_connect(const HostPort& address);
// Returns the result of `begin_connect`: 0, or an error number.
int connect_error(int socket);
// Sets TCP_NODELAY, so that small messages leave at once.
void set_no_delay(int socket) noexcept;
// Acknowledges received data now. TCP would otherwise wait for up to about 40 ms. It does not
// affect later data.
void acknowledge_now(int socket) noexcept;
// Returns whether the peer has not yet acknowledged some of the sent bytes.
bool has_unacknowledged(int socket) noexcept;
// Accepts a pending connection. Returns an empty Fd if there is none. Throws SystemError.
Fd accept_pending(int listener);

}  // namespace hocket::os
