// Listens on a port of a given range.
#pragma once

#include <functional>
#include <string>

#include "foundation/base/config.h"
#include "foundation/os/fd.h"

namespace hocket::os {

// Makes a socket that listens on a free port of the range. If the range is not set, the system
// chooses the port. Throws SystemError, which names the address and the range.
Fd listen_tcp(const std::string& host, base::PortRange range);

// Calls `use` with one free port of the range after another, until `use` returns true. It is for a
// library that listens by itself. During a call of `use`, no other process takes the port through
// the functions of this file. Throws SystemError if `use` never returns true.
void use_free_port(base::PortRange range, const std::function<bool(int port)>& use);

// Returns whether a socket could listen on this port at all addresses of this host.
bool is_port_free(int port);

}  // namespace hocket::os
