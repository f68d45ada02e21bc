#include "interfaces/cli/hosts/socket_address.h"

#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cstring>

#include "interfaces/cli/fd.h"

namespace hocket::cli {

std::string SocketAddress::text() const {
  std::array<char, NI_MAXHOST> host{};
  ::getnameinfo(get(), length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
  return host.data();
}

int SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
}

bool SocketAddress::is_loopback() const {
  return family() == AF_INET ? text().starts_with("127.") : text() == "::1";
}

bool SocketAddress::is_usable() const { return !is_loopback() && !text().starts_with("fe80:"); }

std::vector<SocketAddress> resolve(const std::string& name, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::vector<SocketAddress> addresses;
  if (::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return addresses;
  }
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.length = each->ai_addrlen;
    addresses.push_back(address);
  }
  ::freeaddrinfo(found);
  return addresses;
}

bool is_of_this_host(SocketAddress address) {
  if (address.family() == AF_INET) reinterpret_cast<sockaddr_in&>(address.storage).sin_port = 0;
  if (address.family() == AF_INET6) reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = 0;
  const Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  return fd.valid() && ::bind(fd.get(), address.get(), address.length) == 0;
}

std::optional<SocketAddress> source_toward(const SocketAddress& target) {
  const Fd fd(::socket(target.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  SocketAddress source;
  source.length = sizeof source.storage;
  if (!fd.valid() || ::connect(fd.get(), target.get(), target.length) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&source.storage), &source.length) != 0) {
    return std::nullopt;
  }
  return source;
}

}  // namespace hocket::cli
