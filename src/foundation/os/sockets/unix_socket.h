// AF_UNIX sockets with abstract names, which are not in the file system, and the transfer of
// descriptors over them.
//
// They are stream sockets, close-on-exec and nonblocking. The functions here block until their
// deadline. They throw RendezvousError if the time runs out or the peer has closed, and SystemError
// otherwise. SIGPIPE never occurs.
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

// A resource: a listening socket. One thread at a time.
class UnixListener {
 public:
  // Lets the kernel choose a name that is unique on this host (in this network namespace).
  static UnixListener autobind();
  // Uses a given name, without the leading NUL, of at most 107 bytes. Throws SystemError; the error
  // is EADDRINUSE if the name is in use.
  static UnixListener bind_abstract(std::string_view name);

  // Returns the name for connect_abstract, in this or another process. It is printable if the given
  // name was; autobind's names are five hexadecimal digits.
  const std::string& name() const noexcept { return name_; }
  const Fd& fd() const noexcept { return fd_; }
  // Gives up ownership and returns the socket.
  Fd release() && noexcept { return std::move(fd_); }

  // Accepts the next peer. It may be any process of this host: check its credentials.
  Fd accept(base::Deadline deadline);

 private:
  UnixListener(Fd fd, std::string name) noexcept : fd_(std::move(fd)), name_(std::move(name)) {}
  Fd fd_;
  std::string name_;
};

// Throws SystemError (ECONNREFUSED) at once if nobody listens. Waits while the backlog is full.
Fd connect_abstract(std::string_view name, base::Deadline deadline);

// Transfer one message with one descriptor and some bytes. The receiver must ask for exactly that
// number of bytes. The descriptor arrives close-on-exec. A message without a descriptor is a
// RendezvousError.
void send_fd(const Fd& socket,
             const Fd& fd,
             std::span<const std::byte> payload,
             base::Deadline deadline);
Fd receive_fd(const Fd& socket, std::span<std::byte> payload, base::Deadline deadline);

}  // namespace hocket::os
