#include "engines/shm/shm_point_to_point.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engines/shm/envelopes.h"
#include "engines/shm/staging.h"
#include "foundation/core/reduce.h"
#include "foundation/os/process/process_memory.h"

namespace hocket::engines::shm {

using engine::Envelope;
using engine::MessageId;

namespace {

// Limits in bytes. A message of up to kEagerBytes is sent in one record. If the receiver does not
// read directly from the sender's memory, a message of up to kUnaskedBytes is sent without a
// request: the request would cost more than it saves. If ranks share a processor, a request costs
// more, so the limit is kUnaskedInTurns.
constexpr std::size_t kEagerBytes = 16 * 1024;
constexpr std::size_t kUnaskedBytes = 32 * 1024;
constexpr std::size_t kUnaskedInTurns = 64 * 1024;
// Limit in bytes of an eager message that answers a received message. Its receiver probably waits
// for it. Then one copy by the kernel finishes sooner than two copies through the ring, which
// overlap only in part. In a series of messages the two copies overlap completely.
constexpr std::size_t kEagerAnswer = 8 * 1024;
// Long messages are divided into pieces, so that the sender copies a piece into the ring while the
// receiver copies the previous piece out. Shorter messages have shorter pieces, because the copy of
// the first piece overlaps with nothing.
constexpr std::size_t kLargestPiece = 32 * 1024;
constexpr std::size_t kSmallestPiece = 8 * 1024;
std::size_t piece_of(std::size_t message) {
  return std::clamp(message / 4 / 64 * 64, kSmallestPiece, kLargestPiece);
}

// Returns the bytes of one ring. All rings together should fit into the caches when all pairs
// communicate.
std::size_t ring_bytes(int size) {
  std::size_t bytes = 256 * 1024;
  for (int n = 2; n < size && bytes > 16 * 1024; n *= 2) bytes /= 2;
  return bytes;
}

// Returns the number of records of one ring. A send completes immediately while fewer messages than
// this wait in the ring. Groups with many ranks have fewer records in each ring, so that the
// records of all rings stay in the caches.
std::size_t ring_records(int size) { return size <= 16 ? 64 : 32; }

bool is_eager(std::size_t message, std::size_t ring) {
  return message <= std::min(kEagerBytes, ring / 4);
}

std::size_t index_of(int from, int to, int size) {
  return static_cast<std::size_t>(from) * static_cast<std::size_t>(size) +
         static_cast<std::size_t>(to);
}

}  // namespace

std::size_t ShmPointToPoint::bytes(int size) {
  const std::size_t pairs = index_of(size, 0, size);
  return pairs * (ChannelShared::bytes(ring_records(size)) + ring_bytes(size));
}

ShmPointToPoint::ShmPointToPoint(control::GroupControl& control, std::byte* memory)
    : control_(control) {
  const int size = control.size();
  const std::size_t ring = ring_bytes(size);
  const std::size_t records = ring_records(size);
  const std::size_t shared = ChannelShared::bytes(records);
  std::byte* rings = memory + index_of(size, 0, size) * shared;
  const auto channel = [&](int from, int to) {
    const std::size_t index = index_of(from, to, size);
    auto* const both = reinterpret_cast<ChannelShared*>(memory + index * shared);
    return RingChannel(both, records, rings + index * ring, ring);
  };
  peers_.reserve(static_cast<std::size_t>(size));
  looks_.reserve(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    peers_.push_back(Peer{.out = channel(control.rank(), i), .in = channel(i, control.rank())});
    looks_.push_back({.record = peers_.back().in.expected(), .has_work = false});
  }
}

ShmPointToPoint::~ShmPointToPoint() {
  for (Slot& message : slots_) {
    if (message.state == Slot::State::kRequested) end_offer(message.envelope.peer, message.offer);
    if (message.state == Slot::State::kReceiving)
      end_offer(message.received.peer, message.write_offer);
  }
}

std::uint32_t ShmPointToPoint::allocate() {
  ++under_way_;
  if (free_.empty()) {
    slots_.emplace_back();
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  slots_[index] = Slot{};
  return index;
}

MessageId ShmPointToPoint::send(const Envelope& to, std::span<const std::byte> bytes) {
  Peer& peer = peers_[static_cast<std::size_t>(to.peer)];
  const bool answers = std::exchange(peer.sent_after, arrived_) != arrived_;
  const RecordType type = type_of(peer, to, bytes.size(), answers);
  if (peer.is_idle() && type == RecordType::kEager && write_eager(to, ++next_id_, bytes)) {
    control_.ring(to.peer);
    return engine::kComplete;
  }
  const std::uint32_t index = allocate();
  Slot& slot = slots_[index];
  slot.envelope = to;
  slot.from = bytes.data();
  slot.bytes = bytes.size();
  slot.id = ++next_id_;
  slot.type = type;
  slot.state = Slot::State::kQueued;
  peer.queued.push_back(index);
  write_to(to.peer);
  note_work(to.peer);
  return MessageId{index};
}

MessageId ShmPointToPoint::recv(const Envelope& from, std::span<std::byte> bytes) {
  const std::uint32_t index = allocate();
  Slot& slot = slots_[index];
  slot.envelope = from;
  slot.to = bytes.data();
  slot.bytes = bytes.size();
  slot.state = Slot::State::kPosted;
  if (from.peer != engine::kAnyPeer) {
    if (match_early(index, from.peer)) return MessageId{index};
  } else {
    for (int i = 0; i < control_.size(); ++i) {
      if (match_early(index, i)) return MessageId{index};
    }
  }
  posted_.push(from, index);
  return MessageId{index};
}

bool ShmPointToPoint::test(MessageId id, Envelope* received) {
  if (id == engine::kComplete) return true;
  Slot& message = slot(id);
  if (message.state == Slot::State::kMismatch) {
    throw engine::EnvelopeMismatch{message.envelope, message.received};
  }
  if (message.state != Slot::State::kDone) return false;
  if (received != nullptr) *received = message.received;
  message.state = Slot::State::kFree;
  free_.push_back(static_cast<std::uint32_t>(id));
  return true;
}

void ShmPointToPoint::cancel(MessageId id) noexcept {
  if (id == engine::kComplete) return;
  const auto index = static_cast<std::uint32_t>(id);
  Slot& message = slots_[index];
  const int rank =
      message.state == Slot::State::kReceiving ? message.received.peer : message.envelope.peer;
  if (rank >= 0 && rank < control_.size()) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (message.state == Slot::State::kRequested) {
      end_offer(rank, message.offer);
      note(rank, {.type = RecordType::kCancel, .id = message.id});
    }
    if (message.state == Slot::State::kReceiving) end_offer(rank, message.write_offer);
    std::erase(peer.queued, index);
    std::erase(peer.requested, index);
    std::erase(peer.streaming, index);
    std::erase(peer.reading, index);
    std::erase(peer.writing, index);
    std::erase(peer.receiving, index);  // bytes that arrive later for this message are dropped
  }
  if (message.state == Slot::State::kPosted) posted_.erase(index);
  if (message.state != Slot::State::kDone && message.state != Slot::State::kMismatch) --under_way_;
  message.state = Slot::State::kFree;
  free_.push_back(index);
}

bool ShmPointToPoint::withdraw(MessageId id) noexcept {
  if (id == engine::kComplete || slot(id).state != Slot::State::kPosted) return false;
  cancel(id);
  return true;
}

std::optional<Envelope> ShmPointToPoint::waiting(const Envelope& wanted) {
  for (int i = 0; i < control_.size(); ++i) {
    if (wanted.peer != engine::kAnyPeer && wanted.peer != i) continue;
    const auto* const found = peers_[static_cast<std::size_t>(i)].unexpected.find(wanted.tag);
    if (found != nullptr) return found->value.envelope;
  }
  return std::nullopt;
}

bool ShmPointToPoint::move(Reads reads) {
  bool moved = false;
  for (int i = 0; i < control_.size(); ++i) {
    const Look& look = looks_[static_cast<std::size_t>(i)];
    if (look.record.is_there()) moved |= read_from(i, reads);
    if (!look.has_work) continue;
    moved |= read_arrays(i);
    moved |= write_arrays(i);
    moved |= write_to(i);
    note_work(i);
  }
  if (moved) ++moves_;
  return moved;
}

std::optional<std::uint64_t> ShmPointToPoint::moves_at_rest() const noexcept {
  for (const Peer& peer : peers_) {
    if (!peer.streaming.empty() || !peer.receiving.empty() || peer.copies()) return {};
  }
  return moves_;
}

// --- Writing ------------------------------------------------------------------------------------

void ShmPointToPoint::note(int rank, const RecordHeader& header, const ArrayOffer& offer) {
  peers_[static_cast<std::size_t>(rank)].notes.push_back({header, offer});
  write_to(rank);
  note_work(rank);
}

// Writes a whole message if the ring has room for it. Returns whether it did.
bool ShmPointToPoint::write_eager(const Envelope& to,
                                  std::uint32_t id,
                                  std::span<const std::byte> bytes) {
  RingChannel& out = peers_[static_cast<std::size_t>(to.peer)].out;
  if (!out.has_record() || out.room(bytes.size(), bytes.size()) < bytes.size()) return false;
  out.write(header_of(RecordType::kEager, to, id), bytes, bytes.size());
  // If receives are posted, skip the claim: it would delay the messages that arrive for them.
  if (posted_.empty()) out.claim_next(bytes.size());
  return true;
}

// Writes what waits for a peer to its ring: first notes, then the first records of queued messages,
// then the bytes of streaming messages. Each of the three keeps its order.
bool ShmPointToPoint::write_to(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.is_idle()) return false;
  bool moved = false;
  while (!peer.notes.empty() && peer.out.has_record()) {
    const Note& note = peer.notes.front();
    const auto payload = std::as_bytes(std::span(&note.offer, note.offer.ticket != 0));
    peer.out.write(note.header, payload, 0);
    peer.notes.erase(peer.notes.begin());
    moved = true;
  }
  if (peer.notes.empty()) {
    moved |= write_queued(rank);
    moved |= write_streams(rank);
  }
  if (moved) control_.ring(rank);
  return moved;
}

bool ShmPointToPoint::write_queued(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  bool moved = false;
  while (!peer.queued.empty()) {
    const std::uint32_t index = peer.queued.front();
    Slot& message = slots_[index];
    if (message.type == RecordType::kEager) {
      if (!write_eager(message.envelope, message.id, {message.from, message.bytes})) break;
      message.received = message.envelope;
      end(message);
    } else {
      if (!peer.out.has_record()) break;
      const bool begins = message.type == RecordType::kBegin;
      if (!begins) message.offer = offer(peer, message);
      const auto payload = std::as_bytes(std::span(&message.offer, message.offer.ticket != 0));
      peer.out.write(header_of(message.type, message.envelope, message.id), payload, message.bytes);
      message.state = begins ? Slot::State::kStreaming : Slot::State::kRequested;
      (begins ? peer.streaming : peer.requested).push_back(index);
    }
    peer.queued.pop_front();
    moved = true;
  }
  return moved;
}

bool ShmPointToPoint::write_streams(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  bool moved = false;
  while (!peer.streaming.empty()) {
    const std::uint32_t index = peer.streaming.front();
    Slot& message = slots_[index];
    const std::size_t piece = std::min(piece_of(message.bytes), peer.out.capacity() / 4);
    const std::size_t wanted = std::min(piece, message.bytes - message.moved);
    const std::size_t room = peer.out.room(wanted, std::min<std::size_t>(wanted, 4096));
    if (room == 0) break;
    RecordHeader header = header_of(RecordType::kBulk, message.envelope, message.id);
    peer.out.write(header, {message.from + message.moved, room}, message.bytes);
    message.moved += room;
    moved = true;
    if (message.moved == message.bytes) {
      message.received = message.envelope;
      end(message);
      peer.streaming.erase(peer.streaming.begin());
    } else {
      control_.ring(rank);
    }
  }
  return moved;
}

// Returns whether the receiver should read long messages directly from the sender's memory.
bool ShmPointToPoint::is_read_directly(const Peer& peer) const noexcept {
  const base::SingleCopy wanted = control_.host().peer_memory.single_copy();
  if (wanted == base::SingleCopy::kWhereQuicker) return !peer.out.is_near();
  return wanted == base::SingleCopy::kAlways;
}

// Returns the type of a message's first record. `answers` says whether this rank has received a
// message since it last sent one to this peer.
RecordType ShmPointToPoint::type_of(const Peer& peer,
                                    const Envelope& to,
                                    std::size_t message,
                                    bool answers) const noexcept {
  const std::size_t ring = peer.out.capacity();
  if (message <= std::min(kEagerAnswer, ring / 4) && !to.synchronous) return RecordType::kEager;
  const bool in_turns = !control_.host().processors.may_spin();
  const bool is_direct = !in_turns && is_read_directly(peer);
  if (to.synchronous) return RecordType::kRequest;
  if (is_eager(message, ring) && !(is_direct && answers && message > kEagerAnswer)) {
    return RecordType::kEager;
  }
  const std::size_t unasked = is_direct ? kEagerAnswer : in_turns ? kUnaskedInTurns : kUnaskedBytes;
  return message <= std::min(unasked, ring / 2) ? RecordType::kBegin : RecordType::kRequest;
}

// Exposes the message and returns the offer for the receiver to read it, or an empty offer. If the
// kernel later refuses the read, the receiver asks for the bytes through the ring.
ArrayOffer ShmPointToPoint::offer(Peer& peer, const Slot& message) noexcept {
  if (!is_read_directly(peer) || message.bytes <= kEagerAnswer) return {};
  constexpr std::uint64_t kNotZero = std::uint64_t{1} << 32;
  return peer.out.expose(message.from, kNotZero | message.id).value_or(ArrayOffer{});
}

// Copies one piece of the oldest message whose receiver lets this rank write to its memory.
bool ShmPointToPoint::write_arrays(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.writing.empty()) return false;
  const std::uint32_t index = peer.writing.front();
  Slot& message = slots_[index];
  PieceClaims claims(peer.out.claims(message.offer), message.bytes);
  const auto piece = claims.claim_back();
  int error = 0;
  if (piece) {
    error = peer.in.write_to(control_,
                             rank,
                             message.write_offer,
                             message.from + piece->first,
                             piece->first,
                             piece->length);
    if (error == 0) {
      message.moved += piece->length;
      control_.ring(control_.rank());  // wakes this rank to continue with the next piece
      return true;
    }
  }
  peer.writing.erase(peer.writing.begin());
  message.write_offer = {};
  if (error == ESRCH) return true;  // the receiver cancelled the message or has ended
  if (error != 0 || message.moved != 0) {
    note(rank, {.type = RecordType::kWritten, .count = error != 0 ? 1U : 0U, .id = message.id});
  }
  message.moved = 0;
  return true;
}

void ShmPointToPoint::end_offer(int rank, ArrayOffer& offer) noexcept {
  const ArrayOffer ended = std::exchange(offer, {});
  if (ended.ticket == 0) return;
  peers_[static_cast<std::size_t>(rank)].out.withdraw(control_, rank, ended.place);
}

}  // namespace hocket::engines::shm
