// Finds the addresses at which other hosts can reach this host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foundation/os/sockets/socket.h"

namespace hocket::os {

// Returns the addresses of all interfaces that are up, except loopback and link-local addresses.
// IPv4 addresses come first.
std::vector<std::string> outside_addresses();

// Returns this host's address on the route to another host. It asks the routing table and sends
// nothing. Throws RendezvousError if the host's name cannot be resolved, and SystemError if there
// is no route.
std::string address_toward(const HostPort& other);

// The name of a network interface and one of its addresses. A value.
struct Interface {
  std::string name;
  std::string address;
};
// Finds an interface by its name or by one of its addresses. Absent if no such interface is up.
std::optional<Interface> find_interface(const std::string& name_or_address);

}  // namespace hocket::os
