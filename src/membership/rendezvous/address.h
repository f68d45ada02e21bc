// The address of a store, in the form of HOCKET_STORE and InitOptions::address.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "foundation/os/sockets/socket.h"

namespace hocket::rendezvous {

// An abstract AF_UNIX name. A value.
struct UnixName {
  std::string name;
};
using Address = std::variant<UnixName, os::HostPort>;

// Parses "unix:NAME", "host:port" or "[v6]:port". Throws InvalidArgument, which names the setting
// as `what`.
Address parse_address(std::string_view text, std::string_view what);
std::string to_string(const Address& address);

}  // namespace hocket::rendezvous
