// Common functions of stream sockets: waits with a deadline, complete transfers, addresses.
//
// All sockets are close-on-exec and nonblocking. SIGPIPE never occurs. EINTR is retried.
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

// Waits until a descriptor is ready. Returns false if the deadline passed first. An error or
// hang-up counts as ready; the next call reports it. Throws Aborted if the user interrupts it, as
// all waiting functions below.
bool wait_ready(int fd, Readiness readiness, base::Deadline deadline);

// Transfer all bytes. They throw RendezvousError if the time runs out or the peer has closed.
void send_all(const Fd& socket, std::span<const std::byte> bytes, base::Deadline deadline);
void receive_all(const Fd& socket, std::span<std::byte> bytes, base::Deadline deadline);

// A TCP address as text. A value.
struct HostPort {
  std::string host;
  int port = 0;
};
// Parses "host:port" or "[v6]:port". Absent for any other text.
std::optional<HostPort> parse_host_port(std::string_view text);
std::string to_string(const HostPort& address);
// Returns true for "localhost", 127.0.0.0/8 and ::1, without asking a name server.
bool is_loopback(std::string_view host);
// Returns true if the connection's own address is a loopback address. Then the other one is too.
bool is_loopback_connection(int socket);

// Makes a listening socket. Throws SystemError, which names the address.
Fd listen_tcp(const HostPort& address);
// Return the port that a socket, or its peer, is bound to.
int local_port(int socket);
int peer_port(int socket);
// Returns the address of a connection's other end, without its port. Empty if there is none.
std::string peer_host(int socket);
// Tries each of the host's addresses once, and sets TCP_NODELAY. Throws SystemError with the last
// error, or RendezvousError at the deadline or for an unknown name.
Fd connect_tcp(const HostPort& address, base::Deadline deadline);
// Begins a connection to a numeric address, which is made once the socket is writable. Throws
// SystemError, and RendezvousError for a name.
Fd begin_connect(const HostPort& address);
// Returns the error of a connection that `begin_connect` began, or 0.
int connect_error(int socket);
// Makes small messages leave at once.
void set_no_delay(int socket) noexcept;
// Acknowledges the received data now, instead of after about 40 ms. It has no lasting effect.
void acknowledge_now(int socket) noexcept;
// Returns whether sent bytes have not been acknowledged.
bool has_unacknowledged(int socket) noexcept;
// Accepts a pending connection. Returns an empty Fd if there is none. Throws SystemError.
Fd accept_pending(int listener);

}  // namespace hocket::os
