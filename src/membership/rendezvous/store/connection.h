// One client, as the server sees it. Included by the server's files only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foundation/os/poller.h"
#include "membership/rendezvous/store/request.h"
#include "membership/rendezvous/wire/channel.h"
#include "membership/rendezvous/wire/handshake.h"

namespace hocket::rendezvous {

// A resource: a channel and its client's state; belongs to the server's thread. Nothing that the
// client sends, or fails to read, makes it throw: the connection is closed instead.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // The interface of the server that the connection uses.
  class Owner {
   public:
    // The client has proved itself: may it come in?
    virtual Verdict judge(Connection& connection, const Hello& hello) = 0;
    // The client has shown that it does not know the key.
    virtual void distrusted(const Connection& connection) = 0;
    virtual void handle(Connection& connection, NumberedRequest&& request) = 0;
    // Asks the server to call `take_turn` soon, but not from within this call.
    virtual void put_off(Connection& connection) = 0;
    // May end the connection's life, but only after the connection's current method returns.
    virtual void closed(Connection& connection) = 0;

   protected:
    ~Owner() = default;
  };
  // Data of the server that all its connections share.
  struct Context {
    os::Poller& poller;
    Owner& owner;
    std::span<std::byte> scratch;  // used within a turn only
    Trust trust = Trust::kKey;
    Key key;
  };

  Connection(Context& context, std::unique_ptr<Channel> channel, std::uint64_t id);
  ~Connection();

  // The poller's token, too.
  std::uint64_t id() const noexcept { return id_; }
  int fd() const noexcept { return channel_->fd(); }
  void start();
  void take(const os::Poller::Event& event);
  void take_turn();
  void reply(std::uint32_t request, const Reply& reply);
  // Closes the connection when everything is sent.
  void close_when_sent();
  void close();

 private:
  enum class Stage { kHello, kProof, kOpen, kLeaving, kClosed };
  // A frame, and a large value behind it, which stays in the store's memory.
  struct Outgoing {
    Bytes frame;
    std::shared_ptr<const Bytes> value;
  };

  void read_turn();
  bool consume(std::span<const std::byte> bytes);
  std::size_t take_frames(std::span<const std::byte> bytes, bool& sane);
  bool take(std::span<const std::byte> payload);
  bool take_hello(std::span<const std::byte> payload);
  bool take_proof(std::span<const std::byte> payload);
  bool take_request(std::span<const std::byte> payload);
  void send_payload(const Bytes& payload);
  void flush();
  void close_later();
  void settle();
  bool is_backed_up() const noexcept;

  Context& context_;
  std::unique_ptr<Channel> channel_;
  const std::uint64_t id_;
  Stage stage_ = Stage::kHello;
  bool is_full_ = false;    // the system accepts no further bytes for now
  bool is_doomed_ = false;  // it is closed at its next turn
  os::Poller::Interest interest_;
  std::size_t unanswered_ = 0;
  Bytes received_;  // the start of a frame
  std::vector<Outgoing> to_send_;
  std::size_t first_ = 0;         // that is not sent
  std::size_t sent_ = 0;          // of it
  std::size_t queued_bytes_ = 0;  // of all
  struct Introduction;
  std::unique_ptr<Introduction> introduction_;  // until the proof is checked
};

}  // namespace hocket::rendezvous
