#include "foundation/os/sockets/ports.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>

#include "foundation/base/deadline.h"
#include "foundation/base/poll.h"
#include "foundation/os/sockets/socket.h"
#include "foundation/os/sockets/unix_socket.h"
#include "hocket/error.h"

namespace hocket::os {
namespace {

// The time for which to wait for claimed ports. Another process may give up its claim a moment
// later.
constexpr std::chrono::milliseconds kForClaims{1000};
constexpr std::chrono::milliseconds kPause{10};

// Claims a port: tells the other processes of this network namespace that this process is about to
// take it. A claim is an abstract AF_UNIX name. Absent if another process has claimed the port.
std::optional<UnixListener> claim(int port) {
  try {
    return UnixListener::bind_abstract(fmt::format("hocket-port-{}", port));
  } catch (const SystemError& error) {
    if (error.error_number() == EADDRINUSE) return std::nullopt;
    throw;
  }
}

// Calls `use` with each port of the range that no other process has claimed, until `use` returns
// true. Processes begin at different ports, so they seldom compete.
bool try_ports(base::PortRange range, const std::function<bool(int)>& use) {
  const int count = range.high - range.low + 1;
  bool is_used = false;
  const auto is_over = [&] {
    bool may_come_free = false;
    for (int i = 0; i < count && !is_used; ++i) {
      const int port = range.low + (::getpid() + i) % count;
      const auto claimed = claim(port);
      is_used = claimed && use(port);
      may_come_free = may_come_free || !claimed;
    }
    return is_used || !may_come_free;
  };
  base::poll_until(is_over, base::Deadline::in(kForClaims), kPause);
  return is_used;
}

[[noreturn]] void throw_none_free(base::PortRange range, const std::string& where) {
  throw SystemError(
      fmt::format("no port from {} to {} is free{} (HOCKET_PORTS): each rank takes two, "
                  "and ports of a job that has ended may stay taken for a minute; "
                  "give a wider range",
                  range.low,
                  range.high,
                  where),
      EADDRINUSE);
}

}  // namespace

bool is_port_free(int port) {
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(static_cast<std::uint16_t>(port));
  const Fd both(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int off = 0;
  if (both && ::setsockopt(both.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0) {
    return ::bind(both.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
  }
  sockaddr_in any_v4{};
  any_v4.sin_family = AF_INET;
  any_v4.sin_port = any.sin6_port;
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any_v4), sizeof any_v4) == 0;
}

Fd listen_tcp(const std::string& host, base::PortRange range) {
  if (!range.is_set()) return listen_tcp(HostPort{.host = host, .port = 0});
  Fd listener;
  const bool found = try_ports(range, [&](int port) {
    try {
      listener = listen_tcp(HostPort{.host = host, .port = port});
      return true;
    } catch (const SystemError& error) {
      if (error.error_number() == EADDRINUSE) return false;
      throw;
    }
  });
  if (!found) throw_none_free(range, " at " + host);
  return listener;
}

void use_free_port(base::PortRange range, const std::function<bool(int port)>& use) {
  const auto use_if_free = [&](int port) { return is_port_free(port) && use(port); };
  if (!try_ports(range, use_if_free)) throw_none_free(range, "");
}

}  // namespace hocket::os
