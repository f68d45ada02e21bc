// One client, as the server sees it. Included by the server's files only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "rendezvous/asio.h"
#include "rendezvous/channel.h"
#include "rendezvous/handshake.h"
#include "rendezvous/request.h"

namespace hocket::rendezvous {

// A resource: a channel and its client's state; belongs to the server's thread. Nothing that the
// client sends, or fails to take, makes it throw: it is closed instead.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // What the connection needs of its server.
  class Owner {
   public:
    // The client has proved itself: may it come in?
    virtual Verdict judge(Connection& connection, const Hello& hello) = 0;
    virtual void handle(Connection& connection, NumberedRequest&& request) = 0;
    virtual void closed(Connection& connection) = 0;

   protected:
    ~Owner() = default;
  };
  // What a server lets its connections know, once for all of them.
  struct Context {
    asio::io_context& io;
    Owner& owner;
    std::span<std::byte> scratch;  // used within a turn only
    Trust trust = Trust::kKey;
    Key key;
  };

  Connection(Context& context, std::unique_ptr<Channel> channel, std::uint64_t id);
  ~Connection();

  std::uint64_t id() const noexcept { return id_; }
  void start() { wait_to_read(); }
  void reply(std::uint32_t request, const Reply& reply);
  // When everything is sent.
  void close_when_sent();
  void close();

 private:
  enum class Stage { kHello, kProof, kOpen, kLeaving, kClosed };
  // A frame, and what follows it from the store's own memory.
  struct Outgoing {
    Bytes frame;
    std::shared_ptr<const Bytes> value;
  };

  void wait_to_read();
  void wait_to_write();
  void take_turn();
  void read_turn();
  bool consume(std::span<const std::byte> bytes);
  std::size_t take_frames(std::span<const std::byte> bytes, bool& sane);
  bool take(std::span<const std::byte> payload);
  bool take_hello(std::span<const std::byte> payload);
  bool take_proof(std::span<const std::byte> payload);
  bool take_request(std::span<const std::byte> payload);
  void send_payload(const Bytes& payload);
  void flush();
  bool is_backed_up() const noexcept;

  Context& context_;
  std::unique_ptr<Channel> channel_;
  asio::posix::stream_descriptor descriptor_;  // borrows the channel's
  const std::uint64_t id_;
  Stage stage_ = Stage::kHello;
  bool waits_to_read_ = false;
  bool waits_to_write_ = false;
  std::size_t unanswered_ = 0;
  Bytes received_;  // the start of a frame
  std::deque<Outgoing> to_send_;
  std::size_t sent_ = 0;          // of the first
  std::size_t queued_bytes_ = 0;  // of all
  struct Introduction;
  std::unique_ptr<Introduction> introduction_;  // until the proof
};

}  // namespace hocket::rendezvous
