// Addresses of this host and of others, from the system's resolver and routes.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

namespace hocket::cli {

// A value: an address and a port.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  // The address in digits, without the port.
  std::string text() const;
  int port() const;
  bool is_loopback() const;
  // False for loopback and link-local addresses, which other hosts cannot use.
  bool is_usable() const;
};

// Returns the addresses of a name, with that port. Empty: the name cannot be resolved.
std::vector<SocketAddress> resolve(const std::string& name, int port = 9);
bool is_of_this_host(SocketAddress address);
// Returns the address from which packets to `target` leave. Nothing is sent.
std::optional<SocketAddress> source_toward(const SocketAddress& target);

}  // namespace hocket::cli
