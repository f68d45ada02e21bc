#include "os/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <memory>

namespace hocket::os {
namespace {

// Empty where the address is of no use to others.
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

}  // namespace

std::vector<std::string> outside_addresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  std::vector<std::string> found;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    const bool useful = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    if (!useful || each->ifa_addr == nullptr) continue;
    if (auto text = text_of(*each->ifa_addr); !text.empty()) found.push_back(std::move(text));
  }
  std::stable_partition(found.begin(), found.end(), [](const std::string& text) {
    return text.find(':') == std::string::npos;
  });
  return found;
}

}  // namespace hocket::os
