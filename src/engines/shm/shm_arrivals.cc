// The receiving half of ShmPointToPoint: reads records from the rings and matches them with
// receives.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engines/shm/envelopes.h"
#include "engines/shm/shm_point_to_point.h"
#include "engines/shm/staging.h"
#include "foundation/base/relax.h"
#include "foundation/core/reduce.h"
#include "foundation/os/process/process_memory.h"

namespace hocket::engines::shm {

using engine::Envelope;

namespace {

// Limit in bytes of a peer's unexpected messages in this rank's memory. Above it, this rank reads
// no more records from the peer's ring.
constexpr std::size_t kMostEarlyBytes = std::size_t{64} << 20;
// Bytes of an array that this rank reads before it looks for other records.
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;
// Messages from this length in bytes on are copied by both ends. The receiver reads a shorter
// message before the sender learns that it may write.
constexpr std::size_t kBothEndsFrom = std::size_t{512} << 10;
// One in so many receives does not take the short way, so that `move` serves the other peers even
// if every message has arrived in time.
constexpr std::uint64_t kLongWayEvery = 64;
// So many looks follow each other without a pause, which would delay a short message by a fifth.
constexpr int kQuickLooks = 200;

}  // namespace

// Copies a message from the ring to its array without a slot. This is right only while this rank
// has no other message under way, because an earlier receive may want the same message.
bool ShmPointToPoint::recv_soon(const Envelope& from,
                                std::span<std::byte> bytes,
                                int& polls,
                                Envelope& received) {
  if (from.peer == engine::kAnyPeer || under_way_ != 0) return false;
  Peer& peer = peers_[static_cast<std::size_t>(from.peer)];
  if (!peer.unexpected.empty() || ++soon_ % kLongWayEvery == 0) return false;
  Look& look = looks_[static_cast<std::size_t>(from.peer)];
  for (int looks = 0; !look.record.is_there(); --polls) {
    if (polls <= 0) return false;
    if (++looks > kQuickLooks) base::relax();
  }
  const auto record = peer.in.front();
  if (!record || record->header.type != RecordType::kEager) return false;
  const Envelope sent = envelope_of(record->header, from.peer);
  const std::size_t length = sent.count * size_of(sent.dtype);
  if (!engine::is_for(from, from.peer, sent.tag) || !engine::is_alike(from, sent) ||
      record->payload.bytes.size() != length) {
    return false;
  }
  const std::size_t stored = std::min(length, bytes.size());
  record->payload.part(0, stored).copy_to(bytes.data(), core::Stores::kCached);
  peer.in.pop();
  look.record = peer.in.expected();
  ++arrived_;
  ++moves_;
  control_.ring(from.peer);  // the peer may wait for room in the ring
  received = sent;
  return true;
}

bool ShmPointToPoint::read_from(int rank, Reads reads) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  Look& look = looks_[static_cast<std::size_t>(rank)];
  bool moved = false;
  while (peer.early_bytes < kMostEarlyBytes && (reads == Reads::kAll || under_way_ != 0)) {
    const auto record = peer.in.front();
    if (!record) break;
    look.has_work = true;  // before `take`, which may throw
    take(rank, *record);
    peer.in.pop();
    look.record = peer.in.expected();
    note_work(rank);
    moved = true;
  }
  if (moved) control_.ring(rank);  // the peer may wait for room in the ring
  return moved;
}

void ShmPointToPoint::take(int rank, const RingChannel::Record& record) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  const auto find = [&](const std::vector<std::uint32_t>& list) {
    return std::find_if(list.begin(), list.end(), [&](std::uint32_t index) {
      return slots_[index].id == record.header.id;
    });
  };
  switch (record.header.type) {
    case RecordType::kEager:
    case RecordType::kBegin:
    case RecordType::kRequest:
      take_message(rank, record);
      break;
    case RecordType::kBulk:
      take_bulk(peer, record);
      break;
    case RecordType::kGrant:
    case RecordType::kRead:
    case RecordType::kRefuse: {
      const auto at = find(peer.requested);
      if (at == peer.requested.end()) break;
      Slot& message = slots_[*at];
      std::erase(peer.writing, *at);
      message.moved = 0;
      end_offer(rank, message.offer);
      if (record.header.type == RecordType::kGrant) {
        message.bytes = std::min<std::size_t>(message.bytes, record.header.count);
      }
      if (record.header.type == RecordType::kGrant && message.bytes != 0) {
        message.state = Slot::State::kStreaming;
        peer.streaming.push_back(*at);
      } else if (record.header.type != RecordType::kRefuse) {
        message.received = message.envelope;
        end(message);
      } else {
        message.received = envelope_of(record.header, rank);
        end(message, Slot::State::kMismatch);
      }
      peer.requested.erase(at);
      break;
    }
    case RecordType::kWriteOffer: {
      const auto at = find(peer.requested);
      if (at == peer.requested.end() || record.payload.bytes.size() != sizeof(ArrayOffer)) break;
      Slot& message = slots_[*at];
      message.bytes = std::min<std::size_t>(message.bytes, record.header.count);
      std::memcpy(&message.write_offer, record.payload.bytes.data(), sizeof(ArrayOffer));
      peer.writing.push_back(*at);
      break;
    }
    case RecordType::kWritten: {
      const auto is_it = [&](std::uint32_t index) { return slots_[index].id == record.header.id; };
      const auto early = std::ranges::find_if(peer.reading, is_it);
      if (early != peer.reading.end()) slots_[*early].is_written = true;
      const auto at = early != peer.reading.end() ? early : find(peer.receiving);
      if (at == peer.receiving.end()) break;
      if (record.header.count != 0 || early == peer.reading.end()) {
        end_reading(rank, *at, record.header.count == 0 ? 0 : EIO);
      }
      break;
    }
    case RecordType::kCancel:
      if (auto* const unexpected = peer.unexpected.find_last_if([&](const Unexpected& message) {
            return message.type == RecordType::kRequest && message.id == record.header.id;
          })) {
        peer.early_bytes -= peer.unexpected.pop(*unexpected).bytes.size();
      }
      break;
  }
}

void ShmPointToPoint::take_message(int rank, const RingChannel::Record& record) {
  const RecordHeader& header = record.header;
  Unexpected message{
      .envelope = envelope_of(header, rank), .id = header.id, .type = header.type, .bytes = {}};
  ++arrived_;
  if (auto* const receive = posted_.find(rank, header.tag)) {
    match(rank, posted_.pop(*receive), message, record.payload);
    return;
  }
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  message.add(record.payload);
  peer.early_bytes += message.bytes.size();
  peer.unexpected.push(header.tag, std::move(message));
}

// Matches a message with its receive. `payload` holds the bytes of the message that have arrived.
void ShmPointToPoint::match(int rank,
                            std::uint32_t receive,
                            const Unexpected& message,
                            const Staged& payload) {
  Slot& slot = slots_[receive];
  const bool requested = message.type == RecordType::kRequest;
  slot.received = message.envelope;
  slot.id = message.id;
  const bool alike = engine::is_alike(slot.envelope, message.envelope);
  const std::size_t sent = message.envelope.count * size_of(message.envelope.dtype);
  if (alike) slot.bytes = std::min(slot.bytes, sent);  // bytes beyond the receive are dropped
  const bool whole = message.type != RecordType::kEager || payload.bytes.size() == sent;
  if (!alike || !whole) {
    end(slot, Slot::State::kMismatch);
    if (requested) note(rank, header_of(RecordType::kRefuse, slot.envelope, message.id));
    return;
  }
  if (message.type == RecordType::kEager) {
    payload.part(0, slot.bytes).copy_to(slot.to, core::Stores::kCached);
    end(slot);
    return;
  }
  if (requested && slot.bytes == 0) {
    end(slot);
    note(rank, {.type = RecordType::kGrant, .count = 0, .id = message.id});
    return;
  }
  // After a request the sender sends only as many bytes as the receive stores. Without a request it
  // sends all bytes.
  slot.incoming = requested ? slot.bytes : sent;
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  slot.state = Slot::State::kReceiving;
  slot.offer = {};
  if (requested && payload.bytes.size() == sizeof(ArrayOffer)) {
    std::memcpy(&slot.offer, payload.bytes.data(), sizeof(ArrayOffer));
    peer.reading.push_back(receive);
    looks_[static_cast<std::size_t>(rank)].has_work = true;
    slot.is_written = false;
    slot.write_offer = {};
    if (may_offer_write(slot)) {
      constexpr std::uint64_t kNotZero = std::uint64_t{1} << 33;
      slot.write_offer = peer.out.expose(slot.to, kNotZero | slot.id).value_or(ArrayOffer{});
    }
    if (slot.write_offer.ticket != 0) {
      note(rank,
           {.type = RecordType::kWriteOffer, .count = slot.bytes, .id = slot.id},
           slot.write_offer);
    }
    read_arrays(rank);
    return;
  }
  peer.receiving.push_back(receive);
  if (requested) {
    note(rank, {.type = RecordType::kGrant, .count = slot.bytes, .id = message.id});
  } else {
    take_piece(peer, receive, payload);
  }
}

// Returns whether to let the sender write to the array of this receive.
bool ShmPointToPoint::may_offer_write(const Slot& message) const noexcept {
  if (!control_.host().peer_memory.may_write() || message.received.peer == control_.rank())
    return false;
  const bool is_always = control_.host().peer_memory.single_copy() == base::SingleCopy::kAlways;
  const std::size_t least = is_always ? 2 * PieceClaims::piece_bytes(0) : kBothEndsFrom;
  return message.bytes >= least && os::others_may_write(message.to, message.bytes);
}

// Reads one piece of the oldest array that this rank reads from this peer. Returns false if there
// is no such array.
bool ShmPointToPoint::read_arrays(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.reading.empty()) return false;
  const std::uint32_t receive = peer.reading.front();
  const int error = read_piece(rank, slots_[receive]);
  if (error == 0 && !has_all(rank, slots_[receive])) return true;
  return end_reading(rank, receive, error);
}

int ShmPointToPoint::read_piece(int rank, Slot& message) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  PieceClaims::Piece piece{message.moved, std::min(kReadAtOnce, message.bytes - message.moved)};
  if (message.write_offer.ticket != 0) {
    PieceClaims claims(peer.in.claims(message.offer), message.bytes);
    const auto claimed = claims.claim_front();
    if (!claimed) return 0;
    piece = *claimed;
  }
  const int error = peer.in.read(
      control_, rank, message.offer, message.to + piece.first, piece.first, piece.length);
  if (error == 0) message.moved = piece.first + piece.length;
  control_.ring(control_.rank());  // wakes this rank to continue with the next piece
  return error;
}

// Returns whether all bytes of the message have been copied. If nothing is left to read but the
// sender still writes, moves the message from `reading` to `receiving` and returns false.
bool ShmPointToPoint::has_all(int rank, const Slot& message) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (message.write_offer.ticket == 0) return message.moved == message.bytes;
  const PieceClaims claims(peer.in.claims(message.offer), message.bytes);
  if (!claims.all_claimed()) return false;
  if (!claims.has_back() || message.is_written) return true;
  peer.receiving.push_back(peer.reading.front());
  peer.reading.erase(peer.reading.begin());
  return false;
}

// Ends the direct copies of a receive. If `error` is 0, the receive is complete. After ESRCH the
// message never completes. After any other error this rank asks for the bytes through the ring.
bool ShmPointToPoint::end_reading(int rank, std::uint32_t receive, int error) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  Slot& slot = slots_[receive];
  std::erase(peer.reading, receive);
  std::erase(peer.receiving, receive);
  end_offer(rank, slot.write_offer);
  if (error == ESRCH) return true;  // the sender cancelled the message or has ended
  if (error == 0) {
    end(slot);
    note(rank, {.type = RecordType::kRead, .id = slot.id});
  } else {
    slot.moved = 0;
    peer.receiving.push_back(receive);
    note(rank, {.type = RecordType::kGrant, .count = slot.bytes, .id = slot.id});
  }
  return true;
}

bool ShmPointToPoint::match_early(std::uint32_t receive, int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  auto* const found = peer.unexpected.find(slots_[receive].envelope.tag);
  if (found == nullptr) return false;
  const Unexpected message = peer.unexpected.pop(*found);
  peer.early_bytes -= message.bytes.size();
  match(rank, receive, message, {message.bytes});
  return true;
}

void ShmPointToPoint::take_bulk(Peer& peer, const RingChannel::Record& record) {
  const Staged& piece = record.payload;
  const auto at = std::ranges::find_if(
      peer.receiving, [&](std::uint32_t index) { return slots_[index].id == record.header.id; });
  if (at != peer.receiving.end()) return take_piece(peer, *at, piece);
  auto* const unexpected = peer.unexpected.find_last_if([&](const Unexpected& message) {
    return message.type == RecordType::kBegin && message.id == record.header.id;
  });
  if (unexpected == nullptr) return;  // cancelled on this rank
  unexpected->value.add(piece);
  peer.early_bytes += piece.bytes.size();
}

void ShmPointToPoint::take_piece(Peer& peer, std::uint32_t receive, const Staged& piece) {
  Slot& slot = slots_[receive];
  const std::size_t came = std::min(piece.bytes.size(), slot.incoming - slot.moved);
  const std::size_t room = slot.bytes - std::min(slot.bytes, slot.moved);
  const std::size_t length = std::min(came, room);
  if (length != 0) {
    piece.part(0, length).copy_to(slot.to + slot.moved, stores_for(slot.bytes));
  }
  // A receive that is shorter than the message ends with the message, too: until then the sender
  // needs this rank to empty the ring.
  slot.moved += came;
  if (slot.moved == slot.incoming) {
    end(slot);
    std::erase(peer.receiving, receive);
  }
}

}  // namespace hocket::engines::shm
