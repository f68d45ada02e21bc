#include "engines/ucx/ucx_point_to_point.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hocket::engines::ucx {

using engine::Envelope;
using engine::MessageId;

namespace {

constexpr std::size_t kEagerBytes = 32 * 1024;
// What may be on its way to one peer unasked, or wait there.
constexpr std::size_t kMostUnacknowledged = std::size_t{8} << 20;
constexpr std::size_t kAcknowledgeFrom = std::size_t{1} << 20;
// One packet of UCX's over TCP, so that it arrives without having to be put together; and how many
// of them are handed to UCX at once.
constexpr std::size_t kPieceBytes = 60 * 1024;
constexpr int kPieces = 8;

Envelope envelope_of(const Header& header) {
  // An unknown dtype compares unequal to all and is never looked up by.
  return {.peer = header.source,
          .tag = header.tag,
          .dtype = static_cast<DType>(header.dtype < kDTypeCount ? header.dtype : 0),
          .count = header.count};
}

bool same_kind(const Envelope& a, const Envelope& b) {
  return a.dtype == b.dtype && a.count == b.count;
}

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
    free_.reserve(slots_.size() + 1);  // so that giving back never allocates
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

Header UcxPointToPoint::header(Type type, const Envelope& envelope, std::uint32_t id) const {
  return {.group = members_.group,
          .tag = envelope.tag,
          .count = envelope.count,
          .id = id,
          .source = members_.rank,
          .type = type,
          .dtype = static_cast<std::uint8_t>(envelope.dtype)};
}

void UcxPointToPoint::tell(int rank, Type type, const Envelope& envelope, std::uint32_t id) {
  fabric_->send(world(rank), header(type, envelope, id), {});
}

// --- The interface ------------------------------------------------------------------------------

MessageId UcxPointToPoint::send(const Envelope& to, std::span<const std::byte> bytes) {
  const std::lock_guard lock(fabric_->mutex());
  const std::uint32_t index = allocate();
  Slot& slot = slots_[index];
  Peer& receiver = peer(to.peer);
  slot.envelope = slot.received = to;
  slot.from = bytes.data();
  slot.bytes = bytes.size();
  slot.id = ++next_id_;
  const bool eager =
      bytes.size() <= kEagerBytes && receiver.unacknowledged + bytes.size() <= kMostUnacknowledged;
  Header first = header(eager ? Type::kEager : Type::kRequest, to, slot.id);
  first.number = receiver.next_out++;
  if (eager) receiver.unacknowledged += bytes.size();
  slot.state = eager ? Slot::State::kDone : Slot::State::kRequested;
  fabric_->send(world(to.peer), first, eager ? bytes : std::span<const std::byte>{});
  return MessageId{index};
}

MessageId UcxPointToPoint::recv(const Envelope& from, std::span<std::byte> bytes) {
  const std::lock_guard lock(fabric_->mutex());
  const std::uint32_t index = allocate();
  Slot& slot = slots_[index];
  slot.envelope = from;
  slot.to = bytes.data();
  slot.bytes = bytes.size();
  slot.state = Slot::State::kPosted;
  const int first = from.peer == engine::kAnyPeer ? 0 : from.peer;
  const int last = from.peer == engine::kAnyPeer ? static_cast<int>(peers_.size()) - 1 : from.peer;
  for (int i = first; i <= last; ++i) {
    if (match_early(index, i)) return MessageId{index};
  }
  posted_.push_back(index);
  return MessageId{index};
}

bool UcxPointToPoint::test(MessageId id, Envelope* received) {
  const std::lock_guard lock(fabric_->mutex());
  Slot& message = slot(id);
  if (message.state == Slot::State::kMismatch) {
    throw engine::EnvelopeMismatch{message.envelope, message.received};
  }
  if (message.state != Slot::State::kDone) return false;
  if (received != nullptr) *received = message.received;
  free(static_cast<std::uint32_t>(id));
  return true;
}

bool UcxPointToPoint::progress() {
  const std::unique_lock lock(fabric_->mutex(), std::try_to_lock);
  if (!lock) return false;  // who holds it moves everything
  bool moved = fabric_->poll();
  for (std::size_t i = 0; i < streaming_.size();) {
    const std::uint32_t index = streaming_[i];
    moved |= stream(index);
    if (slots_[index].state == Slot::State::kStreaming) ++i;
  }
  return moved;
}

void UcxPointToPoint::cancel(MessageId id) noexcept {
  const std::lock_guard lock(fabric_->mutex());
  const auto index = static_cast<std::uint32_t>(id);
  Slot& message = slots_[index];
  std::erase(posted_, index);
  std::erase(streaming_, index);
  if (message.state == Slot::State::kRequested || message.state == Slot::State::kStreaming) {
    tell(message.envelope.peer, Type::kCancel, message.envelope, message.id);
  }
  free(index);
}

std::optional<int> UcxPointToPoint::waiting(engine::Tag tag) {
  const std::lock_guard lock(fabric_->mutex());
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    for (const Early& message : peers_[i].early) {
      if (message.header.tag == tag) return static_cast<int>(i);
    }
  }
  return std::nullopt;
}

// --- Out ----------------------------------------------------------------------------------------

// Hands UCX as many pieces as it may have; true when something moved.
bool UcxPointToPoint::stream(std::uint32_t index) {
  Slot& message = slots_[index];
  bool moved = false;
  while (message.moved < message.bytes && *message.pieces < kPieces) {
    const std::size_t length = std::min(kPieceBytes, message.bytes - message.moved);
    Header piece = header(Type::kBulk, message.envelope, message.id);
    piece.offset = message.moved;
    fabric_->send(world(message.envelope.peer),
                  piece,
                  {message.from + message.moved, length},
                  message.pieces);
    message.moved += length;
    moved = true;
  }
  if (message.moved < message.bytes) return moved;
  message.pieces.reset();
  message.state = Slot::State::kDone;
  std::erase(streaming_, index);
  return true;
}

void UcxPointToPoint::acknowledge(int rank, std::size_t bytes) {
  Peer& sender = peer(rank);
  sender.consumed += bytes;
  if (sender.consumed < kAcknowledgeFrom) return;
  Header credit = header(Type::kCredit, {}, 0);
  credit.count = std::exchange(sender.consumed, 0);
  fabric_->send(world(rank), credit, {});
}

// --- In -----------------------------------------------------------------------------------------

void UcxPointToPoint::take(const Header& header, std::span<const std::byte> payload) {
  if (header.source < 0 || header.source >= static_cast<int>(peers_.size())) return;
  switch (header.type) {
    case Type::kEager:
    case Type::kRequest: {
      Peer& sender = peer(header.source);
      // Different sizes may take different ways.
      if (header.number != sender.next_in) {
        sender.out_of_order.try_emplace(header.number,
                                        Early{header, {payload.begin(), payload.end()}});
        return;
      }
      take_message(header, payload);
      ++sender.next_in;
      for (auto next = sender.out_of_order.find(sender.next_in); next != sender.out_of_order.end();
           next = sender.out_of_order.find(sender.next_in)) {
        const Early message = std::move(next->second);
        sender.out_of_order.erase(next);
        take_message(message.header, message.bytes);
        ++sender.next_in;
      }
      return;
    }
    case Type::kBulk:
      return take_bulk(header, payload);
    case Type::kGrant:
    case Type::kRefuse:
    case Type::kCancel:
    case Type::kCredit:
      return take_answer(header);
  }
}

void UcxPointToPoint::take_message(const Header& header, std::span<const std::byte> payload) {
  const auto at = std::find_if(posted_.begin(), posted_.end(), [&](std::uint32_t index) {
    const Envelope& wanted = slots_[index].envelope;
    return (wanted.peer == header.source || wanted.peer == engine::kAnyPeer) &&
           wanted.tag == header.tag;
  });
  if (at == posted_.end()) {
    peer(header.source).early.push_back({header, {payload.begin(), payload.end()}});
    return;
  }
  const std::uint32_t index = *at;
  posted_.erase(at);
  match(index, header, payload);
}

bool UcxPointToPoint::match_early(std::uint32_t receive, int rank) {
  auto& early = peer(rank).early;
  const auto at = std::find_if(early.begin(), early.end(), [&](const Early& message) {
    return message.header.tag == slots_[receive].envelope.tag;
  });
  if (at == early.end()) return false;
  const Early message = std::move(*at);
  early.erase(at);
  match(receive, message.header, message.bytes);
  return true;
}

// Brings a message and its receive together.
void UcxPointToPoint::match(std::uint32_t receive,
                            const Header& header,
                            std::span<const std::byte> payload) {
  Slot& message = slots_[receive];
  message.received = envelope_of(header);
  message.id = header.id;
  const bool requested = header.type == Type::kRequest;
  if (!requested) acknowledge(header.source, payload.size());
  const bool fits = same_kind(message.envelope, message.received) &&
                    (requested || payload.size() == message.bytes);
  if (!fits) {
    message.state = Slot::State::kMismatch;
    if (requested) tell(header.source, Type::kRefuse, message.envelope, header.id);
    return;
  }
  if (requested && message.bytes != 0) {
    message.state = Slot::State::kReceiving;
    tell(header.source, Type::kGrant, message.envelope, header.id);
    return;
  }
  if (requested) tell(header.source, Type::kGrant, message.envelope, header.id);
  if (!payload.empty()) std::memcpy(message.to, payload.data(), payload.size());
  message.state = Slot::State::kDone;
}

void UcxPointToPoint::take_bulk(const Header& header, std::span<const std::byte> payload) {
  for (Slot& message : slots_) {
    if (message.state != Slot::State::kReceiving || message.id != header.id ||
        message.received.peer != header.source) {
      continue;
    }
    if (header.offset > message.bytes || payload.size() > message.bytes - header.offset) return;
    std::memcpy(message.to + header.offset, payload.data(), payload.size());
    message.moved += payload.size();
    if (message.moved == message.bytes) message.state = Slot::State::kDone;
    return;
  }
  // Its receive was cancelled here.
}

std::optional<std::uint32_t> UcxPointToPoint::find_requested(const Header& header) const {
  for (std::uint32_t index = 0; index < slots_.size(); ++index) {
    const Slot& message = slots_[index];
    if (message.state == Slot::State::kRequested && message.id == header.id &&
        message.envelope.peer == header.source) {
      return index;
    }
  }
  return std::nullopt;
}

void UcxPointToPoint::take_answer(const Header& header) {
  Peer& other = peer(header.source);
  if (header.type == Type::kCredit) {
    other.unacknowledged -= std::min<std::size_t>(other.unacknowledged, header.count);
    return;
  }
  if (header.type == Type::kCancel) {
    std::erase_if(other.early, [&](const Early& message) {
      return message.header.type == Type::kRequest && message.header.id == header.id;
    });
    return;
  }
  const auto index = find_requested(header);
  if (!index) return;  // cancelled here
  Slot& message = slots_[*index];
  if (header.type == Type::kRefuse) {
    message.received = envelope_of(header);
    message.state = Slot::State::kMismatch;
    return;
  }
  message.state = Slot::State::kStreaming;
  message.pieces = std::make_shared<int>(0);
  streaming_.push_back(*index);  // its pieces go out with the next progress
}

}  // namespace hocket::engines::ucx
