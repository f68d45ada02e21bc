// Messages between the processes of one host. Each pair of ranks has one ring for each direction;
// see channel.h.
//
// The sender writes a message of up to a few tens of KiB to the ring immediately, in pieces if the
// message is long. The message waits in the ring, or in the receiver's memory, for its receive. For
// a longer message the sender first writes a request. Then both ends copy at the same time: the
// receiver reads pieces from the sender's memory, and the sender writes other pieces to the
// receiver's memory. If the kernel forbids these copies, the bytes stream through the ring: the
// sender fills it while the receiver empties it.
//
//     up to kEagerBytes   kEager ->                                one record
//     medium              kBegin ->  kBulk ->  kBulk ->            without a request
//     long, copied        kRequest ->  <- kWriteOffer   both copy   kWritten ->  <- kRead
//     long, streamed      kRequest ->  <- kGrant   kBulk ->  kBulk ->
//
// Messages are matched by sender and tag, in the order in which they are sent.
#pragma once

#include <deque>
#include <vector>

#include "engine/keyed_queue.h"
#include "engine/point_to_point.h"
#include "engines/shm/channel.h"
#include "engines/shm/staging.h"
#include "membership/control/group.h"

namespace hocket::engines::shm {

// See engine::PointToPoint.
class ShmPointToPoint final : public engine::PointToPoint {
 public:
  static std::size_t bytes(int size);
  // `memory` is a block of bytes(size) zero bytes in the host's segment. The group shares the
  // block.
  ShmPointToPoint(control::GroupControl& control, std::byte* memory);
  ~ShmPointToPoint() override;

  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override;
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override;
  bool recv_soon(const engine::Envelope& from,
                 std::span<std::byte> bytes,
                 int& polls,
                 engine::Envelope& received) override;
  bool test(engine::MessageId message, engine::Envelope* received) override;
  bool progress() override { return move(Reads::kAll); }
  bool progress_wanted() override { return move(Reads::kWanted); }
  std::optional<std::uint64_t> ended() const noexcept override { return ended_; }
  std::optional<std::uint64_t> moves_at_rest() const noexcept override;
  void cancel(engine::MessageId message) noexcept override;
  bool withdraw(engine::MessageId message) noexcept override;
  std::optional<engine::Envelope> waiting(const engine::Envelope& wanted) override;

 private:
  // A message that this rank sends or receives.
  struct Slot {
    enum class State : std::uint8_t {
      kFree,
      kQueued,     // send: not in the ring yet
      kRequested,  // send: the request is in the ring, and the receiver has not answered
      kStreaming,  // send: the bytes are being written to the ring
      kPosted,     // receive: not matched
      kReceiving,  // receive: matched, and the bytes are arriving or being copied
      kDone,
      kMismatch,
    };
    State state = State::kFree;
    RecordType type = RecordType::kEager;  // send: type of the first record
    engine::Envelope envelope;             // as passed on this rank
    engine::Envelope received;             // as passed on the other rank
    const std::byte* from = nullptr;       // send: the array
    std::byte* to = nullptr;               // receive: the array
    std::size_t bytes = 0;                 // send: length of the message; receive: bytes to store
    std::size_t incoming = 0;              // receive: bytes that the sender sends
    std::size_t moved = 0;                 // bytes that have been sent or received
    std::uint32_t id = 0;                  // the sender's number for the message
    ArrayOffer offer;         // the sender's array, for the receiver to read; ticket 0: none
    ArrayOffer write_offer;   // the receiver's array, for the sender to write; ticket 0: none
    bool is_written = false;  // receive: the sender has written all pieces that it claimed
  };
  // A message that arrived before its receive.
  struct Unexpected {
    engine::Envelope envelope;
    std::uint32_t id = 0;
    RecordType type = RecordType::kEager;  // kRequest: the sender still holds the bytes
    std::vector<std::byte> bytes;          // arrived bytes; for a request, its payload

    void add(const Staged& payload) {
      const std::size_t before = bytes.size();
      bytes.resize(before + payload.bytes.size());
      payload.copy_to(bytes.data() + before, core::Stores::kCached);
    }
  };
  // A record to write whose payload is an offer or empty. A value.
  struct Note {
    RecordHeader header;
    ArrayOffer offer = {};  // ticket 0: no payload
  };
  // The state of one peer, in both directions. The vectors hold indices of slots.
  struct Peer {
    RingChannel out;
    RingChannel in;
    std::deque<std::uint32_t> queued;  // sends, in order
    std::vector<std::uint32_t> requested;
    std::vector<std::uint32_t> streaming;
    std::vector<std::uint32_t> receiving;
    std::vector<std::uint32_t> reading;  // receives that read from the sender's memory
    std::vector<std::uint32_t> writing;  // sends that write to the receiver's memory
    std::vector<Note> notes;             // records that wait for room in the ring
    engine::UnexpectedMessages<Unexpected> unexpected;
    std::size_t early_bytes = 0;   // payload in `unexpected`
    std::uint64_t sent_after = 0;  // value of arrived_ at the most recent send to this peer

    // Returns whether nothing waits to be written to the ring.
    bool is_idle() const noexcept { return notes.empty() && streaming.empty() && queued.empty(); }
    // Returns whether this rank copies directly from or to arrays of the peer.
    bool copies() const noexcept { return !reading.empty() || !writing.empty(); }
  };
  // The part of a peer's state that every poll reads. A poll visits all peers, so this data lies in
  // few adjacent cache lines.
  struct Look {
    RingChannel::Expected record;
    bool has_work;  // this rank has records to write to the peer, or arrays to copy
  };

  // Selects how long to read records from the rings. kAll: until the rings are empty. kWanted: only
  // while a message of this rank is in progress.
  enum class Reads : bool { kWanted, kAll };
  bool move(Reads reads);

  std::uint32_t allocate();
  Slot& slot(engine::MessageId id) { return slots_[static_cast<std::uint32_t>(id)]; }
  void end(Slot& message, Slot::State state = Slot::State::kDone) noexcept {
    message.state = state;
    ++ended_;
    --under_way_;
  }

  bool write_eager(const engine::Envelope& to, std::uint32_t id, std::span<const std::byte> bytes);
  bool write_to(int rank);
  bool write_queued(int rank);
  bool write_streams(int rank);
  void note(int rank, const RecordHeader& header, const ArrayOffer& offer = {});
  bool read_from(int rank, Reads reads);
  void note_work(int rank) noexcept {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    looks_[static_cast<std::size_t>(rank)].has_work = !peer.is_idle() || peer.copies();
  }
  void take(int rank, const RingChannel::Record& record);
  void take_message(int rank, const RingChannel::Record& record);
  void take_bulk(Peer& peer, const RingChannel::Record& record);
  void match(int rank, std::uint32_t receive, const Unexpected& message, const Staged& payload);
  void take_piece(Peer& peer, std::uint32_t receive, const Staged& piece);
  bool is_read_directly(const Peer& peer) const noexcept;
  RecordType type_of(const Peer& peer,
                     const engine::Envelope& to,
                     std::size_t message,
                     bool answers) const noexcept;
  ArrayOffer offer(Peer& peer, const Slot& message) noexcept;
  void end_offer(int rank, ArrayOffer& offer) noexcept;
  bool may_offer_write(const Slot& message) const noexcept;
  bool read_arrays(int rank);
  int read_piece(int rank, Slot& message);
  bool has_all(int rank, const Slot& message);
  bool end_reading(int rank, std::uint32_t receive, int error);
  bool write_arrays(int rank);
  bool match_early(std::uint32_t receive, int rank);

  control::GroupControl& control_;
  std::vector<Peer> peers_;  // by rank, including this rank, which may send messages to itself
  std::vector<Look> looks_;  // one for each peer
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  engine::Receives<std::uint32_t> posted_;
  std::size_t under_way_ = 0;  // messages in slots that have not ended
  std::uint32_t next_id_ = 0;
  std::uint64_t arrived_ = 0;  // messages that have arrived from all peers
  std::uint64_t soon_ = 0;     // calls of recv_soon
  std::uint64_t ended_ = 0;    // messages that have become kDone or kMismatch
  std::uint64_t moves_ = 0;    // calls of `move` that made progress
};

}  // namespace hocket::engines::shm
