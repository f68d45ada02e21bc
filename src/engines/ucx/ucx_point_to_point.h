// Messages between hosts, over UCX's active messages.
//
// Messages up to a few hundred KiB are copied and sent at once, in pieces, and wait in the
// receiver's memory for their receive: UCX, which cannot give memory back at once, has none of
// theirs in its hands, and calling one off is forgetting it. Not so the longer ones of these where
// the receiver is known to read: they are sent from where they are. Longer ones ask first. Then
// their bytes go one of two ways:
//
// - In pieces, which UCX reads where they are, and which are copied into place where they arrive.
// - Directly, where UCX then moves them from array to array without a copy: the receiver posts its
//   memory under a tag and tells the tag, and UCX matches and moves them; see Transfer. GPUs'
//   memory always goes this way, as nobody here can copy it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "engine/keyed_queue.h"
#include "engine/point_to_point.h"
#include "engines/ucx/fabric.h"

namespace hocket::engines::ucx {

// Who is in a group. A value.
struct Members {
  std::uint64_t group = 0;  // its number, the same on all ranks and never used again
  int rank = 0;
  std::vector<int> world_ranks;           // of each member
  MemoryKind memory = MemoryKind::kHost;  // what all of the group's messages lie in
};

// See engine::PointToPoint. To a peer that cannot be reached nothing ever moves.
class UcxPointToPoint final : public engine::PointToPoint, private Port {
 public:
  UcxPointToPoint(std::shared_ptr<Fabric> fabric, Members members);
  ~UcxPointToPoint() override;
  UcxPointToPoint(const UcxPointToPoint&) = delete;
  UcxPointToPoint& operator=(const UcxPointToPoint&) = delete;

  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override;
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override;
  std::optional<engine::MessageId> recv_to(const engine::Envelope& from,
                                           std::size_t bytes,
                                           engine::Taker& taker) override;
  bool test(engine::MessageId message, engine::Envelope* received) override;
  bool progress() override;
  void cancel(engine::MessageId message) noexcept override;
  std::optional<engine::Envelope> waiting(const engine::Envelope& wanted) override;
  std::optional<std::uint64_t> owed(int peer) override;

 private:
  struct Slot {
    enum class State : std::uint8_t {
      kFree,
      kRequested,  // send: asked; waits for the grant
      kStreaming,  // send: its bytes are going out
      kLeaving,    // send: the last ones are in UCX's hands, see `left`
      kSending,    // send: UCX moves them, see `transfer`
      kPosted,     // receive: unmatched
      kReceiving,  // receive: its bytes are coming in
      kDone,
      kMismatch,
    };
    State state = State::kFree;
    engine::Envelope envelope;  // as given
    engine::Envelope received;  // as the other side has it
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    engine::Taker* taker = nullptr;  // receive: of its bytes, in place of `to`
    std::vector<std::byte> held;     // for one, what UCX moves
    std::size_t bytes = 0;
    std::size_t moved = 0;
    std::uint32_t id = 0;  // the sender's number of the message
    bool direct = false;   // send: UCX is to move the bytes
    Fabric::Count left;    // send: pieces of the array that have not left yet
    std::unique_ptr<Transfer> transfer;
  };
  // A message that came before its receive.
  struct Early {
    MessageHeader header;
    std::vector<std::byte> bytes;
    std::vector<Early> more;  // later pieces of it
  };
  struct Peer {
    std::uint32_t next_out = 0;
    std::uint32_t next_in = 0;
    std::map<std::uint32_t, Early> out_of_order;
    std::multimap<std::uint32_t, Early> overtaking;  // pieces of what has not come
    engine::EarlyMessages<Early> early;
    std::size_t unacknowledged = 0;  // bytes sent eagerly
    std::size_t consumed = 0;        // bytes received so, not acknowledged yet
    std::uint64_t heard = 0;         // parts of messages, and answers
    engine::Tag in_call = 0;         // of the collective call that its latest message was of
  };

  std::uint32_t allocate();
  engine::MessageId post(std::uint32_t index);
  static void place(Slot& message, std::size_t offset, std::span<const std::byte> payload);
  void free(std::uint32_t index);
  Slot& slot(engine::MessageId id) { return slots_[static_cast<std::uint32_t>(id)]; }
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  int world(int rank) const { return members_.world_ranks[static_cast<std::size_t>(rank)]; }
  static engine::Envelope envelope_of(const MessageHeader& header);
  MessageHeader header(PacketType type, const engine::Envelope& envelope, std::uint32_t id) const;
  void tell(int rank, PacketType type, const engine::Envelope& envelope, std::uint32_t id);

  void take(const MessageHeader& header, std::span<const std::byte> payload) override;
  void take_message(const MessageHeader& header, std::span<const std::byte> payload);
  void take_more(const MessageHeader& header, std::span<const std::byte> payload);
  void add_more(const MessageHeader& header, std::span<const std::byte> payload);
  void take_bulk(const MessageHeader& header, std::span<const std::byte> payload);
  void take_answer(const MessageHeader& header);
  void match(std::uint32_t receive,
             const MessageHeader& header,
             std::span<const std::byte> payload);
  bool match_early(std::uint32_t receive, int rank);
  void acknowledge(int rank, std::size_t bytes);
  bool stream(std::uint32_t index);
  std::optional<std::uint32_t> find_requested(const MessageHeader& header) const;

  const std::shared_ptr<Fabric> fabric_;
  const Members members_;
  // Guarded by the fabric's mutex.
  std::vector<Peer> peers_;
  std::deque<Slot> slots_;  // a deque: slots must not move
  std::vector<std::uint32_t> free_;
  engine::Receives<std::uint32_t> posted_;
  std::vector<std::uint32_t> streaming_;  // sends whose pieces go out
  std::uint32_t next_id_ = 0;
};

}  // namespace hocket::engines::ucx
