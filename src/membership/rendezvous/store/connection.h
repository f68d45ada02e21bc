// One client of a store, on the server's side. Only the server's files include this header.
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

// A resource: a channel, and the state of its client. Only the server's thread uses it. It never
// throws because of data that the client sends or does not read: the connection is closed instead.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // The functions of the server that a connection calls.
  class Owner {
   public:
    // Decides whether to accept a client that has proved that it knows the key.
    virtual Verdict judge(Connection& connection, const Hello& hello) = 0;
    // Reports a client that does not know the key, or has not proved it.
    virtual void distrusted(const Connection& connection) = 0;
    virtual void handle(Connection& connection, NumberedRequest&& request) = 0;
    // Asks the server to call `take_turn` soon, but not from within this call.
    virtual void put_off(Connection& connection) = 0;
    // Reports that the connection is closed. The server may destroy it, but only after the
    // connection's current method has returned.
    virtual void closed(Connection& connection) = 0;

   protected:
    ~Owner() = default;
  };
  // Data of the server that all its connections share.
  struct Context {
    os::Poller& poller;
    Owner& owner;
    std::span<std::byte> scratch;  // for use within one turn
    Trust trust = Trust::kKey;
    Key key;
  };

  Connection(Context& context, std::unique_ptr<Channel> channel, std::uint64_t id);
  ~Connection();

  // Returns the connection's number, which is also its token in the poller.
  std::uint64_t id() const noexcept { return id_; }
  int fd() const noexcept { return channel_->fd(); }
  void start();
  void take(const os::Poller::Event& event);
  void take_turn();
  void reply(std::uint32_t request, const Reply& reply);
  // Closes the connection once everything is sent.
  void close_when_sent();
  void close();

 private:
  enum class Stage { kHello, kProof, kOpen, kLeaving, kClosed };
  // A frame, and a large value that follows it. The value stays in the store's memory and is not
  // copied.
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
  void update_interest();
  bool is_backed_up() const noexcept;

  Context& context_;
  std::unique_ptr<Channel> channel_;
  const std::uint64_t id_;
  Stage stage_ = Stage::kHello;
  bool is_full_ = false;    // the system accepts no more bytes at the moment
  bool is_doomed_ = false;  // its next turn closes it
  os::Poller::Interest interest_;
  std::size_t unanswered_ = 0;
  Bytes received_;  // the first bytes of an incomplete frame
  std::vector<Outgoing> to_send_;
  std::size_t first_ = 0;         // index in to_send_ of the first unsent answer
  std::size_t sent_ = 0;          // how many bytes of this answer are sent
  std::size_t queued_bytes_ = 0;  // how many bytes of all answers are unsent
  struct Introduction;
  std::unique_ptr<Introduction> introduction_;  // until the proof is checked
};

}  // namespace hocket::rendezvous
