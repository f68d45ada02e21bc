// Messages between the processes of one host, through one ring for each direction of each pair.
//
// A message up to a few ten KiB is written to the ring at once, in pieces if it is long. It waits
// in the ring, or in the receiver's memory, for its receive. A longer message first sends a
// request. Then the receiver reads its bytes directly from the sender's memory, while the sender
// writes others directly to the receiver's. If the kernel forbids that, the bytes stream through
// the ring: one end fills it while the other empties it.
// Messages are matched by sender and tag, in the order of sending.
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
  // `memory` is bytes(size) of zeros in the host's segment, which the group shares.
  ShmPointToPoint(control::GroupControl& control, std::byte* memory);
  ~ShmPointToPoint() override;

  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override;
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override;
  bool test(engine::MessageId message, engine::Envelope* received) override;
  bool progress() override { return move(Reads::kAll); }
  bool progress_wanted() override { return move(Reads::kWanted); }
  std::optional<std::uint64_t> ended() const noexcept override { return ended_; }
  std::optional<std::uint64_t> moves_at_rest() const noexcept override;
  void cancel(engine::MessageId message) noexcept override;
  std::optional<engine::Envelope> waiting(const engine::Envelope& wanted) override;

 private:
  // A message that this rank sends or receives.
  struct Slot {
    enum class State : std::uint8_t {
      kFree,
      kQueued,     // send: not in the ring yet
      kRequested,  // send: the request is out; waits for the grant
      kStreaming,  // send: its bytes are going out
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
    std::size_t bytes = 0;     // of the message; of a receive: what is stored
    std::size_t incoming = 0;  // of a receive: what is sent
    std::size_t moved = 0;     // bytes that have gone or come
    std::uint32_t id = 0;      // the sender's number for the message
    ArrayOffer offer;          // where its bytes can be read; ticket 0: they cannot
    ArrayOffer landing;        // where the sender can write them, likewise
    bool is_written = false;   // receive: the sender has written all pieces that it claimed
  };
  // A message that arrived before its receive.
  struct Unexpected {
    engine::Envelope envelope;
    std::uint32_t id = 0;
    RecordType type = RecordType::kEager;  // kRequest: its bytes are still at the sender
    std::vector<std::byte> bytes;          // the bytes that have arrived; for a request, its
                                           // payload

    void add(const Staged& payload) {
      const std::size_t before = bytes.size();
      bytes.resize(before + payload.bytes.size());
      payload.copy_to(bytes.data() + before, core::Stores::kCached);
    }
  };
  // A record with at most an offer as its payload. A value.
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
    std::vector<std::uint32_t> writing;  // sends that write to the receiver's
    std::vector<Note> notes;             // records that the ring had no room for
    engine::UnexpectedMessages<Unexpected> unexpected;
    std::size_t early_bytes = 0;

    // Returns whether nothing waits to be written.
    bool is_idle() const noexcept { return notes.empty() && streaming.empty() && queued.empty(); }
    // Returns whether it reads or writes arrays.
    bool copies() const noexcept { return !reading.empty() || !writing.empty(); }
  };
  // The only data of a peer that is read while nothing happens. Each check visits all peers, so
  // these lie side by side in few cache lines.
  struct Look {
    RingChannel::Expected record;
    bool has_work;  // it has something to write, or arrays to copy
  };

  // Selects how many records to read from the rings: all, or records only while a message of this
  // rank is in progress.
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
  ArrayOffer offer(Peer& peer, const Slot& message) noexcept;
  void end_offer(int rank, Slot& message) noexcept;
  void end_landing(int rank, Slot& message) noexcept;
  bool may_land(const Slot& message) const noexcept;
  bool read_arrays(int rank);
  int read_piece(int rank, Slot& message);
  bool has_all(int rank, const Slot& message);
  bool end_reading(int rank, std::uint32_t receive, int error);
  bool write_arrays(int rank);
  bool match_early(std::uint32_t receive, int rank);

  control::GroupControl& control_;
  std::vector<Peer> peers_;  // by rank; it includes this rank, as messages to oneself are ordinary
  std::vector<Look> looks_;  // one for each peer
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  engine::Receives<std::uint32_t> posted_;
  std::size_t under_way_ = 0;  // messages in slots that have not ended
  std::uint32_t next_id_ = 0;
  std::uint64_t ended_ = 0;  // messages that have become kDone or kMismatch
  std::uint64_t moves_ = 0;  // calls of `move` that moved something
};

}  // namespace hocket::engines::shm
