// One connection between a client and the store, or between hosts: in the clear or over TLS, on
// either side.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "foundation/os/fd.h"
#include "hocket/store.h"

namespace hocket::rendezvous {

// A resource: a connected stream. One thread at a time uses it. It never blocks. Except for the
// constructor and `binding`, its functions never throw.
class Channel {
 public:
  enum class State {
    kMoved,      // some bytes were moved
    kWantRead,   // nothing was moved; wait until the descriptor is readable
    kWantWrite,  // nothing was moved; wait until it is writable
    kClosed,     // the peer has closed the connection, or it is broken
  };
  struct Result {
    State state = State::kClosed;
    std::size_t bytes = 0;
  };

  virtual ~Channel() = default;
  virtual Result receive(std::span<std::byte> to) = 0;
  // Returns true if the last `receive` has taken all data. Another call is then useless before the
  // descriptor is readable again. It may return false even if all data was taken.
  virtual bool is_drained() const noexcept { return false; }
  virtual Result send(std::span<const std::byte> from) = 0;
  // Returns bytes that identify this connection, and that are equal on both ends. Valid once some
  // bytes have been received.
  virtual Bytes binding() const = 0;
  // Returns why the connection was closed, if the peer has not proved that it knows the key, or has
  // rejected this side's proof. Otherwise empty.
  virtual std::string distrust() const { return {}; }

  int fd() const noexcept { return socket_.get(); }

 protected:
  explicit Channel(os::Fd socket) noexcept : socket_(std::move(socket)) {}

 private:
  os::Fd socket_;
};

enum class Side { kClient, kServer };

// Makes a channel without encryption, for loopback, AF_UNIX and trusted networks.
std::unique_ptr<Channel> make_plain_channel(os::Fd socket, Side side);
// Makes the same channel if the caller knows the server's port, which saves a system call.
std::unique_ptr<Channel> make_plain_channel(os::Fd socket, int server_port);

// The state that all TLS connections of one side and key share. A resource. Any thread.
class TlsContext;
std::shared_ptr<TlsContext> make_tls_context(Side side, const Key& key);

// Makes a channel of TLS 1.3 with the job's key as external pre-shared key, for all other
// connections between hosts.
std::unique_ptr<Channel> make_tls_channel(os::Fd socket, std::shared_ptr<TlsContext> context);

}  // namespace hocket::rendezvous
