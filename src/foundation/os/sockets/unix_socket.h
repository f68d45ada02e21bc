// AF_UNIX sockets with abstract names (nothing in the file system), and descriptors sent over them.
//
// Stream sockets, close-on-exec, nonblocking inside; the functions here block until their deadline.
// Failures: RendezvousError when time runs out or the peer has closed; SystemError otherwise.
// SIGPIPE never fires.
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
  // A name that the kernel chooses, unique on this host (in this network namespace).
  static UnixListener autobind();
  // A chosen name, without the leading NUL: at most 107 bytes. Throws SystemError, EADDRINUSE where
  // somebody has it.
  static UnixListener bind_abstract(std::string_view name);

  // For connect_abstract, here or in another process. Printable when it was chosen so; autobind's
  // are five hexadecimal digits.
  const std::string& name() const noexcept { return name_; }
  const Fd& fd() const noexcept { return fd_; }
  // Gives the socket away.
  Fd release() && noexcept { return std::move(fd_); }

  // The next peer. It may be any process of this host: look at its credentials.
  Fd accept(base::Deadline deadline);

 private:
  UnixListener(Fd fd, std::string name) noexcept : fd_(std::move(fd)), name_(std::move(name)) {}
  Fd fd_;
  std::string name_;
};

// Fails at once where nobody listens (SystemError, ECONNREFUSED); waits while the backlog is full.
Fd connect_abstract(std::string_view name, base::Deadline deadline);

// One message of one descriptor and some bytes. The receiver must ask for just as many bytes. The
// descriptor arrives close-on-exec; a message without one is a RendezvousError.
void send_fd(const Fd& socket,
             const Fd& fd,
             std::span<const std::byte> payload,
             base::Deadline deadline);
Fd receive_fd(const Fd& socket, std::span<std::byte> payload, base::Deadline deadline);

}  // namespace hocket::os
