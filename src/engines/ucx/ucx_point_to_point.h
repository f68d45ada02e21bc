// Messages between hosts, over UCX's active messages.
//
// A message of up to a few hundred KiB is copied and sent immediately, in pieces. It waits in the
// receiver's memory for its receive. UCX holds only the copy and not the user's array, because UCX
// cannot always give memory back quickly. So cancelling the message takes no time. One exception:
// messages from kLongFrom bytes on are sent without a copy, if the receiver is known to be reading.
//
// For a longer message the sender first sends a request. Then the bytes take one of two ways:
//
// - In pieces. UCX reads them from the sender's array, and the receiver copies them to its array.
// - Directly, if UCX can move them from array to array without a copy. The receiver posts its
//   memory with a UCX tag and sends the tag to the sender; see Transfer. GPUs' memory always takes
//   this way, because the CPU cannot copy it.
//
//     short            kEager ->  kMore ->  kMore ->
//     long, in pieces  kRequest ->  <- kGrant   kBulk ->  kBulk ->
//     long, direct     kRequest ->  <- kGrant with a tag   UCX moves the bytes
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "engine/keyed_queue.h"
#include "engine/point_to_point.h"
#include "engines/ucx/fabric.h"

namespace hocket::engines::ucx {

// The members of a group. A value.
struct Members {
  std::uint64_t group = 0;  // number of the group, equal on all ranks and never reused
  int rank = 0;
  std::vector<int> world_ranks;           // world rank of each member
  MemoryKind memory = MemoryKind::kHost;  // the memory of all messages of the group
};

// See engine::PointToPoint. Messages to and from a peer that cannot be reached never complete.
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
  bool withdraw(engine::MessageId message) noexcept override;
  std::optional<engine::Envelope> waiting(const engine::Envelope& wanted) override;
  std::optional<std::uint64_t> owed(int peer) override;

 private:
  struct Slot {
    enum class State : std::uint8_t {
      kFree,
      kRequested,  // send: the request was sent, and the grant has not come
      kStreaming,  // send: its pieces are being given to UCX
      kLeaving,    // send: UCX holds the last pieces; see `left`
      kSending,    // send: UCX moves the bytes directly; see `transfer`
      kPosted,     // receive: not matched
      kReceiving,  // receive: matched, and its bytes are arriving
      kDone,
      kMismatch,
    };
    State state = State::kFree;
    engine::Envelope envelope;        // as passed on this rank
    engine::Envelope received;        // as passed on the other rank
    const std::byte* from = nullptr;  // send: the array
    std::byte* to = nullptr;          // receive: where the bytes are stored
    engine::Taker* taker = nullptr;   // receive: consumes the bytes, instead of `to`
    std::vector<std::byte> held;      // receive: temporary memory, for a taker or for `cut`
    std::span<std::byte> cut;         // receive of a longer message: the array
    std::size_t bytes = 0;            // length of the message
    std::size_t moved = 0;            // bytes given to UCX, or received
    std::uint32_t id = 0;             // the sender's number for the message
    bool direct = false;              // send: UCX moves the bytes directly
    Fabric::Count left;               // send: number of pieces that UCX still holds
    std::unique_ptr<Transfer> transfer;
  };
  // A message that arrived before its receive.
  struct Unexpected {
    MessageHeader header;
    std::vector<std::byte> bytes;
    std::vector<Unexpected> more;  // later pieces of the message
  };
  struct Peer {
    std::uint32_t next_out = 0;
    std::uint32_t next_in = 0;
    std::map<std::uint32_t, Unexpected> out_of_order;
    std::multimap<std::uint32_t, Unexpected>
        overtaking;  // pieces of messages that have not arrived
    engine::UnexpectedMessages<Unexpected> unexpected;
    std::size_t unacknowledged = 0;  // bytes sent without a request, and not acknowledged yet
    std::size_t consumed = 0;        // bytes received without a request, and not acknowledged yet
    std::uint64_t heard = 0;         // number of packets from this peer
    engine::Tag in_call = 0;         // tag of the peer's latest message of a collective call
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
  static bool hold(Slot& message) noexcept;
  bool match_early(std::uint32_t receive, int rank);
  void acknowledge(int rank, std::size_t bytes);
  bool stream(std::uint32_t index);
  std::optional<std::uint32_t> find_requested(const MessageHeader& header) const;

  const std::shared_ptr<Fabric> fabric_;
  const Members members_;
  // The fabric's mutex guards the members below.
  std::vector<Peer> peers_;
  std::deque<Slot> slots_;  // a deque: slots must not move
  std::vector<std::uint32_t> free_;
  engine::Receives<std::uint32_t> posted_;
  std::vector<std::uint32_t> streaming_;  // sends in state kStreaming
  std::uint32_t next_id_ = 0;
};

}  // namespace hocket::engines::ucx
