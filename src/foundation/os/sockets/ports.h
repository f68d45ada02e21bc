// Listening on a port of a given range.
#pragma once

#include <functional>
#include <string>

#include "foundation/base/config.h"
#include "foundation/os/fd.h"

namespace hocket::os {

// Makes a socket that listens on a free port of the range; without a range, on any free port.
// Throws SystemError, which names the address and the range.
Fd listen_tcp(const std::string& host, base::PortRange range);

// Calls `use` with one free port of the range after another, until it returns true, for a library
// that listens by itself. Meanwhile no other process that goes by this function takes the port.
// Throws SystemError if it never returns true.
void use_free_port(base::PortRange range, const std::function<bool(int port)>& use);

// Returns whether a listener for all addresses could have this port.
bool is_port_free(int port);

}  // namespace hocket::os
