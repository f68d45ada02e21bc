// Tells which process is at the other end of an AF_UNIX socket, as the kernel reports it.
#pragma once

#include <sys/types.h>

#include "foundation/os/fd.h"

namespace hocket::os {

// The credentials that the peer had when it connected or listened. A value. The pid may have been
// reused since.
struct PeerCredentials {
  pid_t pid = -1;
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);
};

PeerCredentials peer_credentials(int socket);
inline PeerCredentials peer_credentials(const Fd& socket) { return peer_credentials(socket.get()); }

// Throws RendezvousError unless the peer runs as this process's effective user.
void require_same_user(const Fd& socket);

}  // namespace hocket::os
