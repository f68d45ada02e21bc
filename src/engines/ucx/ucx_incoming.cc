// The receiving half of UcxPointToPoint: handles incoming packets and matches messages with
// receives.
#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "engines/ucx/ucx_point_to_point.h"

namespace hocket::engines::ucx {

using engine::Envelope;

namespace {

// From this many unacknowledged bytes on, the receiver sends a separate packet to acknowledge them.
// Otherwise the next message to the sender acknowledges them.
constexpr std::size_t kAcknowledgeFrom = std::size_t{2} << 20;
// Limit of the elements of a message that is longer than its receive. The receiver needs memory for
// the whole message.
constexpr std::uint64_t kMostCut = std::uint64_t{1} << 32;

}  // namespace

Envelope UcxPointToPoint::envelope_of(const MessageHeader& header) {
  // The peer wrote the header. An unknown dtype becomes 0, so that it is never used as an index.
  return {.peer = header.source,
          .tag = header.tag,
          .dtype = static_cast<DType>(header.dtype < kDTypeCount ? header.dtype : 0),
          .order = engine::order_of(header.order),
          .count = header.count};
}

// Counts bytes that were received without a request. Acknowledges them if there are enough.
void UcxPointToPoint::acknowledge(int rank, std::size_t bytes) {
  Peer& sender = peer(rank);
  sender.consumed += bytes;
  if (sender.consumed < kAcknowledgeFrom) return;
  MessageHeader credit = header(PacketType::kCredit, {}, 0);
  credit.credit = std::exchange(sender.consumed, 0);
  fabric_->send(world(rank), credit, {});
}

void UcxPointToPoint::take(const MessageHeader& header, std::span<const std::byte> payload) {
  if (header.source < 0 || header.source >= static_cast<int>(peers_.size())) return;
  Peer& sender = peer(header.source);
  ++sender.heard;
  sender.unacknowledged -= std::min<std::size_t>(sender.unacknowledged, header.credit);
  switch (header.type) {
    case PacketType::kEager:
    case PacketType::kRequest: {
      if (header.tag >= engine::kCallTag) sender.in_call = header.tag;
      // UCX may send messages of different sizes by different ways. So a message may overtake an
      // earlier one.
      if (header.number != sender.next_in) {
        sender.out_of_order.try_emplace(header.number,
                                        Unexpected{header, {payload.begin(), payload.end()}, {}});
        return;
      }
      take_message(header, payload);
      ++sender.next_in;
      for (auto next = sender.out_of_order.find(sender.next_in); next != sender.out_of_order.end();
           next = sender.out_of_order.find(sender.next_in)) {
        const Unexpected message = std::move(next->second);
        sender.out_of_order.erase(next);
        take_message(message.header, message.bytes);
        ++sender.next_in;
      }
      return;
    }
    case PacketType::kBulk:
      return take_bulk(header, payload);
    case PacketType::kMore:
      return take_more(header, payload);
    case PacketType::kGrant:
    case PacketType::kRefuse:
    case PacketType::kCancel:
      return take_answer(header);
    case PacketType::kCredit:
    case PacketType::kTrial:  // the fabric handles it
      return;
  }
}

void UcxPointToPoint::take_message(const MessageHeader& header,
                                   std::span<const std::byte> payload) {
  if (auto* const receive = posted_.find(header.source, header.tag)) {
    match(posted_.pop(*receive), header, payload);
  } else {
    peer(header.source).unexpected.push(header.tag, {header, {payload.begin(), payload.end()}, {}});
  }
  // Handle the pieces that have overtaken the message.
  auto& overtaking = peer(header.source).overtaking;
  for (auto next = overtaking.find(header.number); next != overtaking.end();
       next = overtaking.find(header.number)) {
    const Unexpected piece = std::move(next->second);
    overtaking.erase(next);
    add_more(piece.header, piece.bytes);
  }
}

bool UcxPointToPoint::match_early(std::uint32_t receive, int rank) {
  auto& unexpected = peer(rank).unexpected;
  auto* const found = unexpected.find(slots_[receive].envelope.tag);
  if (found == nullptr) return false;
  const Unexpected message = unexpected.pop(*found);
  match(receive, message.header, message.bytes);
  for (const Unexpected& piece : message.more) add_more(piece.header, piece.bytes);
  return true;
}

// Gives a message temporary memory for all of its bytes. Returns false if there is too little
// memory.
bool UcxPointToPoint::hold(Slot& message) noexcept {
  try {
    message.held.resize(message.bytes);
  } catch (const std::exception&) {
    return false;
  }
  message.to = message.held.data();
  return true;
}

// Matches a message with its receive.
void UcxPointToPoint::match(std::uint32_t receive,
                            const MessageHeader& header,
                            std::span<const std::byte> payload) {
  Slot& message = slots_[receive];
  message.received = envelope_of(header);
  message.id = header.id;
  const bool requested = header.type == PacketType::kRequest;
  if (!requested) acknowledge(header.source, payload.size());
  const bool alike = engine::is_alike(message.envelope, message.received) &&
                     (header.count <= message.envelope.count || header.count <= kMostCut);
  const bool cuts = alike && header.count > message.envelope.count;
  if (cuts) message.cut = {message.to, message.bytes};
  if (alike && header.count != message.envelope.count) {
    message.bytes = header.count * size_of(message.received.dtype);
  }
  const bool is_held = cuts || (message.taker != nullptr && requested && header.direct != 0);
  const bool has_room = !is_held || hold(message);
  const bool reachable = members_.memory == MemoryKind::kHost ||
                         (requested && header.direct != 0) || message.bytes == 0;
  const bool fits =
      has_room && reachable && alike && (requested || payload.size() <= message.bytes);
  if (!fits) {
    message.state = Slot::State::kMismatch;
    if (requested) tell(header.source, PacketType::kRefuse, message.envelope, header.id);
    return;
  }
  if (requested && message.bytes != 0) {
    message.state = Slot::State::kReceiving;
    MessageHeader grant = this->header(PacketType::kGrant, message.envelope, header.id);
    if (header.direct != 0) {
      grant.offset = fabric_->new_tag();
      message.transfer = fabric_->receive_directly(
          world(header.source), grant.offset, {message.to, message.bytes}, members_.memory);
    }
    fabric_->send(world(header.source), grant, {});
    return;
  }
  if (requested) tell(header.source, PacketType::kGrant, message.envelope, header.id);
  place(message, 0, payload);
  message.moved = payload.size();
  message.state =
      message.moved == message.bytes || requested ? Slot::State::kDone : Slot::State::kReceiving;
}

void UcxPointToPoint::place(Slot& message, std::size_t offset, std::span<const std::byte> payload) {
  if (payload.empty()) return;
  if (message.taker != nullptr) {
    message.taker->take(offset, payload);
  } else {
    std::memcpy(message.to + offset, payload.data(), payload.size());
  }
}

// Handles a later piece of a message without a request. It may arrive before the first piece.
void UcxPointToPoint::take_more(const MessageHeader& header, std::span<const std::byte> payload) {
  Peer& sender = peer(header.source);
  if (static_cast<std::int32_t>(header.number - sender.next_in) >= 0) {
    sender.overtaking.emplace(header.number,
                              Unexpected{header, {payload.begin(), payload.end()}, {}});
  } else {
    add_more(header, payload);
  }
}

// Handles a later piece of a message whose first piece has been handled.
void UcxPointToPoint::add_more(const MessageHeader& header, std::span<const std::byte> payload) {
  auto* const first = peer(header.source).unexpected.find_last_if([&](const Unexpected& message) {
    return message.header.number == header.number;
  });
  if (first != nullptr) {
    first->value.more.push_back({header, {payload.begin(), payload.end()}, {}});
    return;
  }
  acknowledge(header.source, payload.size());
  take_bulk(header, payload);
}

void UcxPointToPoint::take_bulk(const MessageHeader& header, std::span<const std::byte> payload) {
  for (Slot& message : slots_) {
    if (message.state != Slot::State::kReceiving || message.id != header.id ||
        message.received.peer != header.source || message.transfer) {
      continue;
    }
    if (header.offset > message.bytes || payload.size() > message.bytes - header.offset) return;
    place(message, header.offset, payload);
    message.moved += payload.size();
    if (message.moved == message.bytes) message.state = Slot::State::kDone;
    return;
  }
  // Not found: the receive was cancelled on this rank.
}

std::optional<std::uint32_t> UcxPointToPoint::find_requested(const MessageHeader& header) const {
  for (std::uint32_t index = 0; index < slots_.size(); ++index) {
    const Slot& message = slots_[index];
    if (message.state == Slot::State::kRequested && message.id == header.id &&
        message.envelope.peer == header.source) {
      return index;
    }
  }
  return std::nullopt;
}

void UcxPointToPoint::take_answer(const MessageHeader& header) {
  if (header.type == PacketType::kCancel) {
    auto& unexpected = peer(header.source).unexpected;
    auto* const request = unexpected.find_last_if([&](const Unexpected& message) {
      return message.header.type == PacketType::kRequest && message.header.id == header.id;
    });
    if (request != nullptr) unexpected.pop(*request);
    return;
  }
  const auto index = find_requested(header);
  if (!index) return;  // cancelled on this rank
  Slot& message = slots_[*index];
  if (header.type == PacketType::kRefuse) {
    message.received = envelope_of(header);
    message.state = Slot::State::kMismatch;
    return;
  }
  if (message.direct) {
    message.state = Slot::State::kSending;
    message.transfer = fabric_->send_directly(
        world(header.source), header.offset, {message.from, message.bytes}, members_.memory);
    return;
  }
  message.state = Slot::State::kStreaming;
  message.left = std::make_shared<int>(0);
  streaming_.push_back(*index);  // the next `progress` sends its pieces
}

}  // namespace hocket::engines::ucx
