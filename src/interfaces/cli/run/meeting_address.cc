#include "interfaces/cli/run/meeting_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <sstream>
#include <vector>

#include "hocket/error.h"
#include "interfaces/cli/fd.h"
#include "interfaces/cli/run/environment_block.h"

namespace hocket::cli {
namespace {

// A value: an address of the network, without a port that matters.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  std::string text() const {
    std::array<char, NI_MAXHOST> host{};
    ::getnameinfo(get(), length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
    return host.data();
  }
  bool is_loopback() const {
    if (family() == AF_INET) return text().starts_with("127.");
    return text() == "::1";
  }
  // Link-local addresses mean nothing on another host.
  bool is_usable() const { return !is_loopback() && !text().starts_with("fe80:"); }
};

std::vector<SocketAddress> resolve(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::vector<SocketAddress> addresses;
  if (::getaddrinfo(name.c_str(), "9", &hints, &found) != 0) return addresses;
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

// The address from which packets to `target` leave. Nothing is sent.
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

std::optional<std::string> address_by_name(const std::string& name) {
  for (const SocketAddress& address : resolve(name)) {
    if (address.is_usable() && is_of_this_host(address)) return address.text();
  }
  return std::nullopt;
}

std::optional<std::string> address_by_route(const Briefing& briefing) {
  for (const HostSlots& other : briefing.hosts) {
    if (&other == &briefing.self()) continue;
    for (const SocketAddress& target : resolve(other.address())) {
      const auto source = source_toward(target);
      if (target.is_usable() && source && source->is_usable()) return source->text();
    }
  }
  return std::nullopt;
}

// SSH_CONNECTION has the client's address and port, and this host's.
std::optional<std::string> address_by_ssh() {
  std::istringstream words{std::string(EnvironmentBlock::inherited().get("SSH_CONNECTION"))};
  std::string client;
  std::string port;
  std::string here;
  words >> client >> port >> here;
  return here.empty() ? std::nullopt : address_by_name(here);
}

bool are_all_loopback(const Briefing& briefing) {
  return std::ranges::all_of(briefing.hosts, [](const HostSlots& host) {
    const auto addresses = resolve(host.address());
    return !addresses.empty() && std::ranges::all_of(addresses, &SocketAddress::is_loopback);
  });
}

}  // namespace

std::string meeting_address(const Briefing& briefing) {
  const std::string name = briefing.self().address();
  if (const auto found = address_by_name(name)) return *found;
  if (const auto found = address_by_route(briefing)) return *found;
  if (const auto found = address_by_ssh()) return *found;
  if (are_all_loopback(briefing)) return resolve(name).front().text();
  std::string means;
  for (const SocketAddress& each : resolve(name))
    means += (means.empty() ? "" : ", ") + each.text();
  throw InvalidArgument(fmt::format(
      "no address is known by which the other hosts reach this one, the first: '{}' means {} here; "
      "name one by --rendezvous ADDRESS",
      name,
      means.empty() ? "nothing" : means));
}

}  // namespace hocket::cli
