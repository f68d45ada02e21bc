// Messages between the processes of one host, through one ring for each direction of each pair.
//
// Messages up to a few ten KiB are written to the ring at once, the longer ones piece by piece, and
// wait there, or in the receiver's memory, for their receive. Those beyond ask first. Then the
// receiver reads their bytes where they lie; or, where the kernel does not let it, they stream
// through the same ring, one end filling it while the other empties it. Matching is by (sender,
// tag) in the order of sending.
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
  // `memory`: bytes(size) of zeros in the host's segment, shared by the group.
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
  // A message of this rank's, sent or received.
  struct Slot {
    enum class State : std::uint8_t {
      kFree,
      kQueued,     // send: not in the ring yet
      kRequested,  // send: asked; waits for the grant
      kStreaming,  // send: its bytes are going out
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
    std::size_t bytes = 0;
    std::size_t moved = 0;
    std::uint32_t id = 0;  // the sender's number of the message
    ArrayOffer offer;      // where its bytes can be read; ticket 0: they cannot
  };
  // A message that came before its receive.
  struct Early {
    engine::Envelope envelope;
    std::uint32_t id = 0;
    RecordType type = RecordType::kEager;  // kRequest: its bytes are still at the sender
    std::vector<std::byte> bytes;          // that have come; of a request: its payload

    void add(const Staged& payload) {
      const std::size_t before = bytes.size();
      bytes.resize(before + payload.bytes.size());
      payload.copy_to(bytes.data() + before, core::Stores::kCached);
    }
  };
  // One peer, both directions. The vectors hold slots' indices.
  struct Peer {
    RingChannel out;
    RingChannel in;
    std::deque<std::uint32_t> queued;  // sends, in order
    std::vector<std::uint32_t> requested;
    std::vector<std::uint32_t> streaming;
    std::vector<std::uint32_t> receiving;
    std::vector<std::uint32_t> reading;  // receives, from where the sender has the bytes
    std::vector<RecordHeader> notes;     // short records that found no room yet
    engine::EarlyMessages<Early> early;
    std::size_t early_bytes = 0;

    // Whether nothing waits to be written.
    bool is_idle() const noexcept { return notes.empty() && streaming.empty() && queued.empty(); }
  };
  // All that is read of a peer when nothing has happened. A look goes over all peers: side by side
  // these lie in few cache lines.
  struct Look {
    RingChannel::Expected record;
    bool has_work;  // something to write, or arrays to read
  };

  // Records, from the rings: all, or as long as a message of this rank's is under way.
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
  void note(int rank, const RecordHeader& header);
  bool read_from(int rank, Reads reads);
  void note_work(int rank) noexcept {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    looks_[static_cast<std::size_t>(rank)].has_work = !peer.is_idle() || !peer.reading.empty();
  }
  void take(int rank, const RingChannel::Record& record);
  void take_message(int rank, const RingChannel::Record& record);
  void take_bulk(Peer& peer, const RingChannel::Record& record);
  void match(int rank, std::uint32_t receive, const Early& message, const Staged& payload);
  void take_piece(Peer& peer, std::uint32_t receive, const Staged& piece);
  ArrayOffer offer(Peer& peer, const Slot& message) noexcept;
  void end_offer(int rank, Slot& message) noexcept;
  bool read_arrays(int rank);
  bool match_early(std::uint32_t receive, int rank);

  control::GroupControl& control_;
  std::vector<Peer> peers_;  // by rank, this one's too: messages to oneself are ordinary
  std::vector<Look> looks_;  // at each of them
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  engine::Receives<std::uint32_t> posted_;
  std::size_t under_way_ = 0;  // messages in slots that have not ended
  std::uint32_t next_id_ = 0;
  std::uint64_t ended_ = 0;  // messages that have become kDone or kMismatch
  std::uint64_t moves_ = 0;  // calls of `move` that moved something
};

}  // namespace hocket::engines::shm
