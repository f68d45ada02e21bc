// AF_UNIX sockets with abstract names, which are not in the file system, and the transfer of
// descriptors over them.
//
// The sockets are stream sockets, close-on-exec and nonblocking. The functions here wait until
// their deadline. They throw RendezvousError if the deadline passes or the peer has closed the
// connection, and SystemError for other failures. SIGPIPE never occurs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "foundation/base/deadline.h"
#include "foundation/os/fd.h"
#include "foundation/os/sockets/peer_credentials.h"

namespace hocket::os {

// A resource: a listening socket. One thread at a time uses it.
class UnixListener {
 public:
  // Lets the kernel choose a name that is unique on this host (in this network namespace).
  static UnixListener autobind();
  // Listens at a given name of at most 107 bytes, without the leading NUL. Throws SystemError; its
  // error is EADDRINUSE if the name is in use.
  static UnixListener bind_abstract(std::string_view name);

  // Returns the name to pass to connect_abstract, in this or another process. The names of autobind
  // are five hexadecimal digits.
  const std::string& name() const noexcept { return name_; }
  const Fd& fd() const noexcept { return fd_; }
  // Gives up ownership and returns the socket.
  Fd release() && noexcept { return std::move(fd_); }

  // Accepts the next peer. Any process of this host may connect, so the caller must check the
  // peer's credentials.
  Fd accept(base::Deadline deadline);

 private:
  UnixListener(Fd fd, std::string name) noexcept : fd_(std::move(fd)), name_(std::move(name)) {}
  Fd fd_;
  std::string name_;
};

// Connects to the listener with this name. Waits while the listener's backlog is full. Throws
// SystemError (ECONNREFUSED) at once if there is no listener.
Fd connect_abstract(std::string_view name, base::Deadline deadline);

// Send and receive one message, with one descriptor and some bytes. The receiver must ask for
// exactly the number of bytes that were sent. The received descriptor is close-on-exec. A message
// without a descriptor is a RendezvousError.
void send_fd(const Fd& socket,
             const Fd& fd,
             std::span<const std::byte> payload,
             base::Deadline deadline);
Fd receive_fd(const Fd& socket, std::span<std::byte> payload, base::Deadline deadline);

}  // namespace hocket::os
