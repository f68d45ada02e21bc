#include "foundation/os/sockets/unix_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "foundation/base/interrupt.h"
#include "foundation/base/poll.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/error.h"

namespace hocket::os {
namespace {

constexpr std::size_t kMaxName = sizeof(sockaddr_un::sun_path) - 1;

struct AbstractAddress {
  sockaddr_un address{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

AbstractAddress abstract_address(std::string_view name) {
  if (name.empty() || name.size() > kMaxName) {
    throw InvalidArgument(fmt::format(
        "the AF_UNIX name \"{}\" has {} bytes; 1 to {} will do", name, name.size(), kMaxName));
  }
  AbstractAddress made;
  made.address.sun_family = AF_UNIX;
  std::memcpy(made.address.sun_path + 1, name.data(), name.size());
  made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return made;
}

Fd make_socket() {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw SystemError("cannot make an AF_UNIX socket", errno);
  return socket;
}

void start_listening(const Fd& socket) {
  if (::listen(socket.get(), SOMAXCONN) != 0) {
    throw SystemError("cannot listen on an AF_UNIX socket", errno);
  }
}

// Space for the control message with one descriptor, aligned for a cmsghdr. If a peer sends more
// descriptors than fit, the kernel closes the others.
struct alignas(cmsghdr) ControlBuffer {
  char bytes[CMSG_SPACE(sizeof(int))] = {};
};

// Takes the descriptor out of a received message. If there are several, it closes all but the last.
Fd take_descriptor(msghdr& message) {
  Fd taken;
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(each) + i * sizeof fd, sizeof fd);
      taken = Fd(fd);
    }
  }
  return taken;
}

// Throws the reason why a message has no descriptor. If this process has no free descriptors, the
// kernel drops the received one without an error. An attempt to duplicate another one then shows
// the error.
[[noreturn]] void throw_without_descriptor(const msghdr& message, const Fd& socket) {
  const bool is_cut = (message.msg_flags & MSG_CTRUNC) != 0;
  if (is_cut && !Fd(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0))) {
    throw SystemError("cannot take a descriptor from another process", errno);
  }
  throw RendezvousError("a message that should carry a descriptor came without one");
}

}  // namespace

UnixListener UnixListener::autobind() {
  Fd socket = make_socket();
  // An address that consists of the family alone asks the kernel for a name.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)) != 0) {
    throw SystemError("cannot bind an AF_UNIX socket", errno);
  }
  start_listening(socket);
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw SystemError("cannot tell the name of an AF_UNIX socket", errno);
  }
  std::string name(address.sun_path + 1, size - offsetof(sockaddr_un, sun_path) - 1);
  return UnixListener(std::move(socket), std::move(name));
}

UnixListener UnixListener::bind_abstract(std::string_view name) {
  const AbstractAddress address = abstract_address(name);
  Fd socket = make_socket();
  if (::bind(socket.get(), address.get(), address.size) != 0) {
    throw SystemError(fmt::format("cannot take the AF_UNIX name \"{}\"", name), errno);
  }
  start_listening(socket);
  return UnixListener(std::move(socket), std::string(name));
}

Fd UnixListener::accept(base::Deadline deadline) {
  for (;;) {
    if (Fd accepted = accept_pending(fd_.get())) return accepted;
    if (!wait_ready(fd_.get(), Readiness::kRead, deadline)) {
      throw RendezvousError(
          fmt::format("nobody connected to the AF_UNIX name \"{}\" in time", name_));
    }
  }
}

Fd connect_abstract(std::string_view name, base::Deadline deadline) {
  const AbstractAddress address = abstract_address(name);
  Fd socket;
  const auto is_connected = [&] {
    socket = make_socket();
    if (::connect(socket.get(), address.get(), address.size) == 0) return true;
    if (errno != EAGAIN && errno != EINTR) {
      throw SystemError(fmt::format("cannot connect to the AF_UNIX name \"{}\"", name), errno);
    }
    // EAGAIN means that the listener's backlog is full. poll(2) cannot wait for this, so retry.
    base::throw_if_interrupted("the wait for another process");
    return false;
  };
  if (base::poll_until(is_connected, deadline, std::chrono::milliseconds(1))) return socket;
  throw RendezvousError(
      fmt::format("the listener at the AF_UNIX name \"{}\" accepted nobody in time", name));
}

void send_fd(const Fd& socket,
             const Fd& fd,
             std::span<const std::byte> payload,
             base::Deadline deadline) {
  if (payload.empty()) {
    throw InvalidArgument("a descriptor travels with at least one byte; the payload is empty");
  }
  iovec part{.iov_base = const_cast<std::byte*>(payload.data()), .iov_len = payload.size()};
  ControlBuffer control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = fd.get();
  std::memcpy(CMSG_DATA(header), &number, sizeof number);
  for (;;) {
    const ssize_t sent = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    // The descriptor was sent with the first byte. The rest follows as plain bytes.
    if (sent > 0)
      return send_all(socket, payload.subspan(static_cast<std::size_t>(sent)), deadline);
    if (errno == EPIPE || errno == ECONNRESET) {
      throw RendezvousError("the process that was to get a descriptor has closed its socket");
    }
    if (errno != EAGAIN && errno != EINTR) throw SystemError("cannot send a descriptor", errno);
    if (!wait_ready(socket.get(), Readiness::kWrite, deadline)) {
      throw RendezvousError("the process that was to get a descriptor did not take it in time");
    }
  }
}

Fd receive_fd(const Fd& socket, std::span<std::byte> payload, base::Deadline deadline) {
  if (payload.empty()) {
    throw InvalidArgument("a descriptor travels with at least one byte; the payload is empty");
  }
  for (;;) {
    iovec part{.iov_base = payload.data(), .iov_len = payload.size()};
    ControlBuffer control;
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    const ssize_t got = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got > 0) {
      Fd taken = take_descriptor(message);
      if (!taken) throw_without_descriptor(message, socket);
      receive_all(socket, payload.subspan(static_cast<std::size_t>(got)), deadline);
      return taken;
    }
    if (got == 0 || errno == ECONNRESET) {
      throw RendezvousError("the process that was to send a descriptor has closed its socket");
    }
    if (errno != EAGAIN && errno != EINTR) throw SystemError("cannot receive a descriptor", errno);
    if (!wait_ready(socket.get(), Readiness::kRead, deadline)) {
      throw RendezvousError("the process that was to send a descriptor did not send it in time");
    }
  }
}

}  // namespace hocket::os
