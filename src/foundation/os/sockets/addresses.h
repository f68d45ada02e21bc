// By which addresses others can reach this host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foundation/os/sockets/socket.h"

namespace hocket::os {

// Of the interfaces that are up and not loopback, IPv4 before IPv6, without link-local ones.
std::vector<std::string> outside_addresses();

// This host's address on the way to another. Asks the routing table; sends nothing. Throws
// SystemError, RendezvousError where there is no such way.
std::string address_toward(const HostPort& other);

// An interface, by its name or by one of its addresses. A value.
struct Interface {
  std::string name;
  std::string address;
};
// Absent where there is none that is up.
std::optional<Interface> find_interface(const std::string& name_or_address);

}  // namespace hocket::os
