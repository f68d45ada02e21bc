#include "membership/rendezvous/address.h"

#include <fmt/format.h>

#include "hocket/error.h"

namespace hocket::rendezvous {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kMaxUnixName = 107;

}  // namespace

Address parse_address(std::string_view text, std::string_view what) {
  if (text.starts_with(kUnix)) {
    const auto name = text.substr(kUnix.size());
    if (!name.empty() && name.size() <= kMaxUnixName) return UnixName{std::string(name)};
  } else if (auto address = os::parse_host_port(text)) {
    return *std::move(address);
  }
  throw InvalidArgument(fmt::format(
      "{} \"{}\" is no address; give host:port, [IPv6]:port or unix:NAME (1 to {} bytes)",
      what,
      text,
      kMaxUnixName));
}

std::string to_string(const Address& address) {
  if (const auto* name = std::get_if<UnixName>(&address)) {
    return std::string(kUnix) + name->name;
  }
  return os::to_string(std::get<os::HostPort>(address));
}

}  // namespace hocket::rendezvous
