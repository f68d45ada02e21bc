#include "foundation/os/sockets/peer_credentials.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "hocket/error.h"

namespace hocket::os {

PeerCredentials peer_credentials(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    throw SystemError("cannot tell who is at the other end of an AF_UNIX socket", errno);
  }
  return {.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
}

void require_same_user(const Fd& socket) {
  const uid_t peer = peer_credentials(socket).uid;
  if (peer == ::geteuid()) return;
  throw RendezvousError(
      fmt::format("the process at the other end of an AF_UNIX socket runs as user {}, this one as "
                  "user {}; all ranks of a job must run as one user",
                  peer,
                  ::geteuid()));
}

}  // namespace hocket::os
