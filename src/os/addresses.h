// By which addresses others can reach this host.
#pragma once

#include <string>
#include <vector>

namespace hocket::os {

// Of the interfaces that are up and not loopback, IPv4 before IPv6, without link-local ones.
std::vector<std::string> outside_addresses();

}  // namespace hocket::os
