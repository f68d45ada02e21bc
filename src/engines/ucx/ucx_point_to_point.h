// Messages between hosts, over UCX's active messages.
//
// A message up to a few hundred KiB is copied and sent at once, in pieces. It waits in the
// receiver's memory for its receive. UCX cannot return memory at once, so it never holds the array
// of such a message, which is cancelled by forgetting it. There is one exception: the longer ones
// of these are sent without a copy, if the receiver is known to be reading.
//
// Still longer messages send a request first. Then their bytes take one of two ways:
//
// - In pieces. UCX reads them from the array, and the receiver copies them into place.
// - Directly, if UCX can move them from array to array without a copy. The receiver posts its
//   memory with a tag and sends the tag; see Transfer. GPUs' memory always takes this way, because
//   the CPU cannot copy it.
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
  std::vector<int> world_ranks;           // of each member
  MemoryKind memory = MemoryKind::kHost;  // the memory of all messages of the group
};

// See engine::PointToPoint. Messages to a peer that cannot be reached never move.
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
      kRequested,  // send: the request is out; waits for the grant
      kStreaming,  // send: its bytes are going out
      kLeaving,    // send: UCX holds the last pieces, see `left`
      kSending,    // send: UCX moves the bytes, see `transfer`
      kPosted,     // receive: not matched
      kReceiving,  // receive: its bytes are arriving
      kDone,
      kMismatch,
    };
    State state = State::kFree;
    engine::Envelope envelope;  // as this side passed it
    engine::Envelope received;  // as the other side passed it
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    engine::Taker* taker = nullptr;  // receive: consumes the bytes, instead of `to`
    std::vector<std::byte> held;     // memory that is received into, for a taker or for `cut`
    std::span<std::byte> cut;        // receive: gets the first bytes of a longer message
    std::size_t bytes = 0;
    std::size_t moved = 0;
    std::uint32_t id = 0;  // the sender's number for the message
    bool direct = false;   // send: UCX moves the bytes directly
    Fabric::Count left;    // send: number of pieces of the array that have not left yet
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
    std::size_t unacknowledged = 0;  // bytes that were sent without a request
    std::size_t consumed = 0;        // bytes received in that way and not acknowledged yet
    std::uint64_t heard = 0;         // number of parts of messages, and of answers
    engine::Tag in_call = 0;         // the collective call of its latest message
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
  // The fabric's mutex guards the members below.
  std::vector<Peer> peers_;
  std::deque<Slot> slots_;  // a deque: slots must not move
  std::vector<std::uint32_t> free_;
  engine::Receives<std::uint32_t> posted_;
  std::vector<std::uint32_t> streaming_;  // sends whose pieces are going out
  std::uint32_t next_id_ = 0;
};

}  // namespace hocket::engines::ucx
