#include "engines/ucx/ucx_point_to_point.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hocket::engines::ucx {

using engine::Envelope;
using engine::MessageId;

namespace {

// All sizes are in bytes. Messages of up to this size are sent without a request, because the extra
// round trip would take a noticeable part of their time.
constexpr std::size_t kUnaskedBytes = 512 * 1024;
// Limit of the bytes that were sent to one peer without a request and that the peer has not
// acknowledged.
constexpr std::size_t kMostUnacknowledged = std::size_t{8} << 20;
// The length of a piece. It fits into one packet of UCX over TCP, so that the receiver need not
// assemble it.
constexpr std::size_t kPieceBytes = 60 * 1024;
// Messages from kLongFrom bytes on have longer pieces, which halves the number of system calls.
// Shorter messages arrive sooner in more pieces: the receiver reads the first piece while the
// sender writes the last one.
constexpr std::size_t kLongFrom = 256 * 1024;
constexpr std::size_t kLongPieceBytes = 124 * 1024;
static_assert(kLongPieceBytes < kReceivedAtOnce);
// Limit of the pieces of one message that UCX holds at the same time.
constexpr int kPieces = 8;

}  // namespace

UcxPointToPoint::UcxPointToPoint(std::shared_ptr<Fabric> fabric, Members members)
    : fabric_(std::move(fabric)),
      members_(std::move(members)),
      peers_(members_.world_ranks.size()) {
  const std::lock_guard lock(fabric_->mutex());
  fabric_->open(members_.group, *this);
}

UcxPointToPoint::~UcxPointToPoint() {
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].state != Slot::State::kFree) cancel(MessageId{i});
  }
  const std::lock_guard lock(fabric_->mutex());
  fabric_->close(members_.group);
}

std::uint32_t UcxPointToPoint::allocate() {
  if (free_.empty()) {
    free_.reserve(slots_.size() + 1);  // so that freeing a slot never allocates
    slots_.emplace_back();
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

void UcxPointToPoint::free(std::uint32_t index) {
  slots_[index] = Slot{};
  free_.push_back(index);
}

MessageHeader UcxPointToPoint::header(PacketType type,
                                      const Envelope& envelope,
                                      std::uint32_t id) const {
  return {.group = members_.group,
          .tag = envelope.tag,
          .count = envelope.count,
          .id = id,
          .source = members_.rank,
          .type = type,
          .dtype = static_cast<std::uint8_t>(envelope.dtype),
          .order = static_cast<std::uint8_t>(envelope.order)};
}

void UcxPointToPoint::tell(int rank, PacketType type, const Envelope& envelope, std::uint32_t id) {
  fabric_->send(world(rank), header(type, envelope, id), {});
}

// --- The interface ------------------------------------------------------------------------------

MessageId UcxPointToPoint::send(const Envelope& to, std::span<const std::byte> bytes) {
  const std::lock_guard lock(fabric_->mutex());
  Peer& receiver = peer(to.peer);
  const int rank = world(to.peer);
  const bool direct =
      members_.memory == MemoryKind::kCuda || fabric_->moves_directly(rank, bytes.size());
  const bool eager = !direct && !to.synchronous && bytes.size() <= kUnaskedBytes &&
                     receiver.unacknowledged + bytes.size() <= kMostUnacknowledged;
  MessageHeader piece = header(eager ? PacketType::kEager : PacketType::kRequest, to, ++next_id_);
  piece.number = receiver.next_out++;
  piece.credit = std::exchange(receiver.consumed, 0);
  piece.direct = direct;
  const auto keep = [&](Slot::State state) {
    const std::uint32_t index = allocate();
    Slot& slot = slots_[index];
    slot.state = state;
    slot.envelope = slot.received = to;
    slot.from = bytes.data();
    slot.bytes = bytes.size();
    slot.id = piece.id;
    slot.direct = direct;
    return MessageId{index};
  };
  if (!eager) {
    const MessageId id = keep(Slot::State::kRequested);
    fabric_->send(rank, piece, {});
    return id;
  }
  receiver.unacknowledged += bytes.size();
  // A peer that has sent a message of this call needs this message to continue, so the peer is
  // reading. Then the array is sent without a copy. Any other peer may be late, and cancelling a
  // send without a copy would require closing the connection.
  const bool in_place = bytes.size() >= kLongFrom && to.tag == receiver.in_call;
  const std::size_t most = bytes.size() < kLongFrom ? kPieceBytes : kLongPieceBytes;
  MessageId id = engine::kComplete;
  Fabric::Count left;
  if (in_place) {
    id = keep(Slot::State::kLeaving);
    slot(id).left = left = std::make_shared<int>(0);
  }
  for (std::size_t at = 0; at == 0 || at < bytes.size(); at += most) {
    piece.offset = at;
    const auto part = bytes.subspan(at, std::min(most, bytes.size() - at));
    if (in_place) {
      fabric_->send_in_place(rank, piece, part, left);
    } else {
      fabric_->send(rank, piece, part);
    }
    piece.type = PacketType::kMore;
    piece.credit = 0;
  }
  return id;
}

MessageId UcxPointToPoint::recv(const Envelope& from, std::span<std::byte> bytes) {
  const std::lock_guard lock(fabric_->mutex());
  const std::uint32_t index = allocate();
  Slot& slot = slots_[index];
  slot.envelope = from;
  slot.to = bytes.data();
  slot.bytes = bytes.size();
  return post(index);
}

// A taker runs on the CPU, so it cannot consume bytes in GPUs' memory.
std::optional<MessageId> UcxPointToPoint::recv_to(const Envelope& from,
                                                  std::size_t bytes,
                                                  engine::Taker& taker) {
  if (members_.memory != MemoryKind::kHost) return std::nullopt;
  const std::lock_guard lock(fabric_->mutex());
  const std::uint32_t index = allocate();
  Slot& slot = slots_[index];
  slot.envelope = from;
  slot.taker = &taker;
  slot.bytes = bytes;
  return post(index);
}

MessageId UcxPointToPoint::post(std::uint32_t index) {
  const Envelope& from = slots_[index].envelope;
  slots_[index].state = Slot::State::kPosted;
  const int first = from.peer == engine::kAnyPeer ? 0 : from.peer;
  const int last = from.peer == engine::kAnyPeer ? static_cast<int>(peers_.size()) - 1 : from.peer;
  for (int i = first; i <= last; ++i) {
    if (match_early(index, i)) return MessageId{index};
  }
  posted_.push(from, index);
  return MessageId{index};
}

bool UcxPointToPoint::test(MessageId id, Envelope* received) {
  if (id == engine::kComplete) return true;
  const std::lock_guard lock(fabric_->mutex());
  Slot& message = slot(id);
  if (message.state == Slot::State::kMismatch) {
    throw engine::EnvelopeMismatch{message.envelope, message.received};
  }
  const bool moved = message.transfer && message.transfer->state == Transfer::State::kDone;
  const bool left = message.state == Slot::State::kLeaving && *message.left == 0;
  if (message.state != Slot::State::kDone && !moved && !left) return false;
  if (moved && message.taker != nullptr) message.taker->take(0, message.held);
  if (!message.cut.empty()) {
    std::memcpy(message.cut.data(), message.held.data(), message.cut.size());
  }
  if (received != nullptr) *received = message.received;
  free(static_cast<std::uint32_t>(id));
  return true;
}

bool UcxPointToPoint::progress() {
  const std::unique_lock lock(fabric_->mutex(), std::try_to_lock);
  if (!lock) return false;  // the thread that holds the lock moves everything
  bool moved = fabric_->poll();
  for (std::size_t i = 0; i < streaming_.size();) {
    const std::uint32_t index = streaming_[i];
    moved |= stream(index);
    if (slots_[index].state == Slot::State::kStreaming) ++i;
  }
  return moved;
}

void UcxPointToPoint::cancel(MessageId id) noexcept {
  if (id == engine::kComplete) return;
  std::unique_lock lock(fabric_->mutex());
  const auto index = static_cast<std::uint32_t>(id);
  Slot& message = slots_[index];
  if (message.state == Slot::State::kPosted) posted_.erase(index);
  std::erase(streaming_, index);
  if (message.state == Slot::State::kRequested || message.state == Slot::State::kStreaming) {
    tell(message.envelope.peer, PacketType::kCancel, message.envelope, message.id);
  }
  message.state = Slot::State::kDone;  // so that later packets are not matched with this message
  if (message.transfer) fabric_->take_back(std::move(message.transfer), lock);
  if (message.left) fabric_->take_back(world(message.envelope.peer), message.left, lock);
  free(index);
}

bool UcxPointToPoint::withdraw(MessageId id) noexcept {
  if (id == engine::kComplete) return false;
  const std::lock_guard lock(fabric_->mutex());
  const auto index = static_cast<std::uint32_t>(id);
  if (slots_[index].state != Slot::State::kPosted) return false;
  posted_.erase(index);
  free(index);
  return true;
}

std::optional<Envelope> UcxPointToPoint::waiting(const Envelope& wanted) {
  const std::lock_guard lock(fabric_->mutex());
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (wanted.peer != engine::kAnyPeer && wanted.peer != static_cast<int>(i)) continue;
    if (auto* const found = peers_[i].unexpected.find(wanted.tag)) {
      return envelope_of(found->value.header);
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> UcxPointToPoint::owed(int peer) {
  using State = Slot::State;
  const std::lock_guard lock(fabric_->mutex());
  const bool any = std::any_of(slots_.begin(), slots_.end(), [peer](const Slot& message) {
    const bool moved = message.transfer && message.transfer->state == Transfer::State::kDone;
    return message.envelope.peer == peer && message.state != State::kFree &&
           message.state != State::kDone && message.state != State::kMismatch && !moved;
  });
  if (!any) return std::nullopt;
  return this->peer(peer).heard;
}

// --- Out ----------------------------------------------------------------------------------------

// Gives UCX the next pieces of a message, until it holds kPieces of them. Returns true if something
// moved.
bool UcxPointToPoint::stream(std::uint32_t index) {
  Slot& message = slots_[index];
  bool moved = false;
  while (message.moved < message.bytes && *message.left < kPieces) {
    const std::size_t length = std::min(kLongPieceBytes, message.bytes - message.moved);
    MessageHeader piece = header(PacketType::kBulk, message.envelope, message.id);
    piece.offset = message.moved;
    fabric_->send_in_place(
        world(message.envelope.peer), piece, {message.from + message.moved, length}, message.left);
    message.moved += length;
    moved = true;
  }
  if (message.moved < message.bytes) return moved;
  message.state = Slot::State::kLeaving;
  std::erase(streaming_, index);
  return true;
}

}  // namespace hocket::engines::ucx
