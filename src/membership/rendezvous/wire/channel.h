// One connection of the store, in the clear or in TLS, on either side.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "foundation/os/fd.h"
#include "hocket/store.h"

namespace hocket::rendezvous {

// A resource: a connected stream. Never blocks, never throws once made; one thread at a time.
class Channel {
 public:
  enum class State {
    kMoved,      // some bytes
    kWantRead,   // none until the descriptor can be read
    kWantWrite,  // none until it can be written
    kClosed,     // by the peer, or broken
  };
  struct Result {
    State state = State::kClosed;
    std::size_t bytes = 0;
  };

  virtual ~Channel() = default;
  virtual Result receive(std::span<std::byte> to) = 0;
  // True if the last `receive` left nothing behind, neither here nor in the system. Another
  // `receive` is useless before the descriptor can be read. It may be false although this is so.
  virtual bool is_drained() const noexcept { return false; }
  virtual Result send(std::span<const std::byte> from) = 0;
  // Identifies this connection, with the same bytes on both ends. Known once bytes have been
  // received.
  virtual Bytes binding() const = 0;
  // The reason why it was closed, if the peer did not prove that it knows the key, or rejected this
  // side's proof; else empty.
  virtual std::string distrust() const { return {}; }

  int fd() const noexcept { return socket_.get(); }

 protected:
  explicit Channel(os::Fd socket) noexcept : socket_(std::move(socket)) {}

 private:
  os::Fd socket_;
};

enum class Side { kClient, kServer };

// In the clear: loopback, AF_UNIX, trusted networks.
std::unique_ptr<Channel> make_plain_channel(os::Fd socket, Side side);
// The same with the server's port, which saves asking the system.
std::unique_ptr<Channel> make_plain_channel(os::Fd socket, int server_port);

// State that TLS connections of one side and key share. A resource; any thread.
class TlsContext;
std::shared_ptr<TlsContext> make_tls_context(Side side, const Key& key);

// TLS 1.3 with the job's key as external pre-shared key: everything else between hosts.
std::unique_ptr<Channel> make_tls_channel(os::Fd socket, std::shared_ptr<TlsContext> context);

}  // namespace hocket::rendezvous
