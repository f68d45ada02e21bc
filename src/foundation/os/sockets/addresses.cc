#include "foundation/os/sockets/addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "foundation/os/fd.h"
#include "hocket/error.h"

namespace hocket::os {
namespace {

// Returns an address as text. Empty if other hosts cannot use it, because it is link-local.
std::string text_of(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    constexpr std::uint32_t kLinkLocal = 0xa9fe0000;  // 169.254.0.0/16
    if ((ntohl(v4.sin_addr.s_addr) & 0xffff0000) == kLinkLocal) return {};
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  } else if (address.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return {};
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  }
  return text;
}

using InterfaceList = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

InterfaceList list_interfaces() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) all = nullptr;
  return {all, &freeifaddrs};
}

}  // namespace

std::vector<std::string> outside_addresses() {
  const InterfaceList all = list_interfaces();
  std::vector<std::string> found;
  for (const ifaddrs* each = all.get(); each != nullptr; each = each->ifa_next) {
    const bool useful = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    if (!useful || each->ifa_addr == nullptr) continue;
    if (auto text = text_of(*each->ifa_addr); !text.empty()) found.push_back(std::move(text));
  }
  std::stable_partition(found.begin(), found.end(), [](const std::string& text) {
    return text.find(':') == std::string::npos;
  });
  return found;
}

std::string address_toward(const HostPort& other) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(other.port);
  if (const int error = getaddrinfo(other.host.c_str(), port.c_str(), &hints, &list); error != 0) {
    throw RendezvousError(fmt::format("cannot resolve the host name \"{}\": {}; check the address",
                                      other.host,
                                      gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    const Fd socket(::socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    auto* address = reinterpret_cast<sockaddr*>(&own);
    const bool is_known = socket && ::connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0 &&
                          ::getsockname(socket.get(), address, &size) == 0;
    error = is_known ? EADDRNOTAVAIL : errno;
    if (!is_known) continue;
    if (auto text = text_of(*address); !text.empty()) return text;
  }
  throw SystemError("there is no way to " + to_string(other), error);
}

std::optional<Interface> find_interface(const std::string& name_or_address) {
  const InterfaceList all = list_interfaces();
  std::optional<Interface> found;
  for (const ifaddrs* each = all.get(); each != nullptr; each = each->ifa_next) {
    if ((each->ifa_flags & IFF_UP) == 0 || each->ifa_addr == nullptr) continue;
    Interface interface{.name = each->ifa_name, .address = text_of(*each->ifa_addr)};
    if (interface.address.empty()) continue;
    const bool is_asked_for = interface.name == name_or_address;
    // A further address of an interface may have a label behind the interface's name: "eth0:1".
    interface.name.resize(std::min(interface.name.find(':'), interface.name.size()));
    if (interface.address == name_or_address) return interface;
    if (!is_asked_for) continue;
    const bool is_v4 = each->ifa_addr->sa_family == AF_INET;
    if (!found || is_v4) found = std::move(interface);
    if (is_v4) break;
  }
  return found;
}

}  // namespace hocket::os
