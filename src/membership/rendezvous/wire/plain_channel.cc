#include <sys/socket.h>

#include <cerrno>

#include "foundation/os/sockets/socket.h"
#include "membership/rendezvous/wire/channel.h"
#include "membership/rendezvous/wire/wire.h"

namespace hocket::rendezvous {
namespace {

Channel::State state_of(int error, Channel::State wanted) noexcept {
  return error == EAGAIN || error == EWOULDBLOCK ? wanted : Channel::State::kClosed;
}

class PlainChannel final : public Channel {
 public:
  PlainChannel(os::Fd socket, int server_port)
      : Channel(std::move(socket)), server_port_(server_port) {}

  Result receive(std::span<std::byte> to) override {
    for (;;) {
      const ssize_t got = ::recv(fd(), to.data(), to.size(), MSG_DONTWAIT);
      is_drained_ = got >= 0 && static_cast<std::size_t>(got) < to.size();
      if (got > 0) return {State::kMoved, static_cast<std::size_t>(got)};
      if (got == 0) return {State::kClosed};
      if (errno != EINTR) return {state_of(errno, State::kWantRead)};
    }
  }

  bool is_drained() const noexcept override { return is_drained_; }

  Result send(std::span<const std::byte> from) override {
    for (;;) {
      const ssize_t sent = ::send(fd(), from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent >= 0) return {State::kMoved, static_cast<std::size_t>(sent)};
      if (errno != EINTR) return {state_of(errno, State::kWantWrite)};
    }
  }

  // The binding is the server's port; 0 for AF_UNIX. So a proof that was meant for another listener
  // on this host cannot be passed on to the server.
  Bytes binding() const override {
    WireWriter writer;
    writer.text("plain");
    writer.u32(static_cast<std::uint32_t>(server_port_));
    return writer.payload();
  }

 private:
  int server_port_;
  bool is_drained_ = false;
};

}  // namespace

std::unique_ptr<Channel> make_plain_channel(os::Fd socket, Side side) {
  const int fd = socket.get();
  const int port = side == Side::kServer ? os::local_port(fd) : os::peer_port(fd);
  return make_plain_channel(std::move(socket), port);
}

std::unique_ptr<Channel> make_plain_channel(os::Fd socket, int server_port) {
  return std::make_unique<PlainChannel>(std::move(socket), server_port);
}

}  // namespace hocket::rendezvous
