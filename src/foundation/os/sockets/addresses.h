// The addresses at which others can reach this host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foundation/os/sockets/socket.h"

namespace hocket::os {

// Returns the addresses of interfaces that are up, except loopback and link-local addresses. IPv4
// comes before IPv6.
std::vector<std::string> outside_addresses();

// Returns this host's address on the route to another host. It asks the routing table and sends
// nothing. Throws SystemError, and RendezvousError if there is no route.
std::string address_toward(const HostPort& other);

// An interface, identified by its name or one of its addresses. A value.
struct Interface {
  std::string name;
  std::string address;
};
// Absent if there is none that is up.
std::optional<Interface> find_interface(const std::string& name_or_address);

}  // namespace hocket::os
