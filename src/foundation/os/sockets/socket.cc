#include "foundation/os/sockets/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <memory>

#include "foundation/base/interrupt.h"
#include "hocket/error.h"

namespace hocket::os {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

AddressList resolve(const HostPort& address, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const int error = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  // Without /etc/hosts the resolver may not know "localhost". The name always means this host (RFC
  // 6761).
  if (error != 0 && address.host == "localhost") {
    return resolve({.host = "127.0.0.1", .port = address.port}, flags);
  }
  if (error != 0) {
    throw RendezvousError(fmt::format("cannot resolve the host name \"{}\": {}; check the address",
                                      address.host,
                                      ::gai_strerror(error)));
  }
  return {found, &::freeaddrinfo};
}

Fd make_socket(const addrinfo& address) {
  return Fd(::socket(
      address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
}

// Waits until a connection is made or has failed. Returns 0, or the error.
int finish_connect(const Fd& socket, base::Deadline deadline) {
  if (!wait_ready(socket.get(), Readiness::kWrite, deadline)) return ETIMEDOUT;
  return connect_error(socket.get());
}

bool is_transient(int error) noexcept {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

std::string host_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    ::inet_ntop(
        AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  } else if (address.ss_family == AF_INET6) {
    ::inet_ntop(
        AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof text);
  }
  return text;
}

int port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return 0;
}

}  // namespace

bool wait_ready(int fd, Readiness readiness, base::Deadline deadline) {
  pollfd waited{.fd = fd,
                .events = static_cast<short>(readiness == Readiness::kRead ? POLLIN : POLLOUT),
                .revents = 0};
  for (;;) {
    const int ready = ::poll(&waited, 1, base::until_asked(deadline).poll_timeout_ms());
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw SystemError("cannot wait for a socket", errno);
    base::throw_if_interrupted("the wait for another process");
    if (deadline.has_passed()) return false;
  }
}

void send_all(const Fd& socket, std::span<const std::byte> bytes, base::Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      throw RendezvousError("the process at the other end of a socket has closed it");
    } else if (!is_transient(errno)) {
      throw SystemError("cannot send to a socket", errno);
    } else if (!wait_ready(socket.get(), Readiness::kWrite, deadline)) {
      throw RendezvousError("the process at the other end of a socket took no bytes in time");
    }
  }
}

void receive_all(const Fd& socket, std::span<std::byte> bytes, base::Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0 || errno == ECONNRESET) {
      throw RendezvousError("the process at the other end of a socket has closed it");
    } else if (!is_transient(errno)) {
      throw SystemError("cannot receive from a socket", errno);
    } else if (!wait_ready(socket.get(), Readiness::kRead, deadline)) {
      throw RendezvousError("the process at the other end of a socket sent nothing in time");
    }
  }
}

std::optional<HostPort> parse_host_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;
  }
  int port = -1;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || rest != digits.data() + digits.size()) return std::nullopt;
  if (host.empty() || port < 0 || port > 65535) return std::nullopt;
  return HostPort{.host = std::string(host), .port = port};
}

std::string to_string(const HostPort& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", address.host, address.port)
               : fmt::format("{}:{}", address.host, address.port);
}

bool is_loopback(std::string_view host) {
  const std::string text(host);
  if (text == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

Fd listen_tcp(const HostPort& address) {
  const AddressList addresses = resolve(address, AI_PASSIVE);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    Fd socket = make_socket(*each);
    if (!socket) {
      error = errno;
      continue;
    }
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(socket.get(), each->ai_addr, each->ai_addrlen) == 0 &&
        ::listen(socket.get(), SOMAXCONN) == 0) {
      return socket;
    }
    error = errno;
  }
  throw SystemError("cannot serve at " + to_string(address), error);
}

bool is_loopback_connection(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  return is_loopback(host_of(address));
}

std::string peer_host(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return host_of(address);
}

int local_port(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw SystemError("cannot tell the address of a socket", errno);
  }
  return port_of(address);
}

int peer_port(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw SystemError("cannot tell the peer of a socket", errno);
  }
  return port_of(address);
}

Fd connect_tcp(const HostPort& address, base::Deadline deadline) {
  const AddressList addresses = resolve(address, 0);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    Fd socket = make_socket(*each);
    if (!socket) {
      error = errno;
      continue;
    }
    set_no_delay(socket.get());
    const int connected = ::connect(socket.get(), each->ai_addr, each->ai_addrlen);
    error = connected == 0 ? 0 : errno;
    if (error == EINPROGRESS || error == EINTR) error = finish_connect(socket, deadline);
    if (error == 0) return socket;
  }
  throw SystemError(
      fmt::format(
          "cannot connect to {}{}",
          to_string(address),
          error == ETIMEDOUT ? " (its host may be off, or a firewall drop the packets)" : ""),
      error);
}

Fd begin_connect(const HostPort& address) {
  const AddressList addresses = resolve(address, AI_NUMERICHOST);
  Fd socket = make_socket(*addresses);
  if (!socket) throw SystemError("cannot make a socket", errno);
  const int connected = ::connect(socket.get(), addresses->ai_addr, addresses->ai_addrlen);
  if (connected != 0 && errno != EINPROGRESS && errno != EINTR) {
    throw SystemError("cannot connect to " + to_string(address), errno);
  }
  return socket;
}

int connect_error(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

void set_no_delay(int socket) noexcept {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void acknowledge_now(int socket) noexcept {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

bool has_unacknowledged(int socket) noexcept {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

Fd accept_pending(int listener) {
  for (;;) {
    const int accepted = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted >= 0) return Fd(accepted);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Fd();
    // A peer that has closed its connection before it was accepted is ignored.
    if (errno != EINTR && errno != ECONNABORTED) {
      throw SystemError("cannot accept a connection", errno);
    }
  }
}

}  // namespace hocket::os
