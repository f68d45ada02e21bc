// The second cut: what carries messages between two ranks of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "hocket/types.h"

namespace hocket::engine {

// Messages of one (peer, direction, tag) arrive in the order they were sent; different tags are
// independent. Users' tags are their int; everything that hocket itself sends is above.
using Tag = std::uint64_t;
inline constexpr Tag kCollectiveTag = Tag{1} << 32;
inline constexpr Tag kStagedTag = Tag{1} << 33;  // messages of GPUs
inline constexpr Tag kCallTag = Tag{1} << 63;    // from here on one tag is one collective call's
inline constexpr int kAnyPeer = -1;
inline constexpr Tag kAnyTag = kCollectiveTag - 1;  // of a receive: whichever of the users'

// What travels in front of a message's bytes; the receiver compares it with what it expects.
struct Envelope {
  int peer = 0;  // whom to send to; whom to receive from, or kAnyPeer
  Tag tag = kCollectiveTag;
  DType dtype = DType::kUInt8;
  MemoryOrder order = MemoryOrder::kAny;
  std::uint64_t count = 0;      // elements
  bool allows_shorter = false;  // of a receive: the message may have fewer; does not travel
};

// Whether a receive is for what `source` sends under `tag`.
constexpr bool is_for(const Envelope& wanted, int source, Tag tag) noexcept {
  return (wanted.peer == kAnyPeer || wanted.peer == source) &&
         (wanted.tag == tag || (wanted.tag == kAnyTag && tag < kAnyTag));
}
// Whether two receives may be for one message.
constexpr bool may_compete(const Envelope& a, const Envelope& b) noexcept {
  return is_for({.peer = kAnyPeer, .tag = a.tag}, kAnyPeer, b.tag) ||
         is_for({.peer = kAnyPeer, .tag = b.tag}, kAnyPeer, a.tag);
}

// Whether what one side sends is what the other waits for, beside peer and tag.
constexpr bool is_alike(const Envelope& wanted, const Envelope& sent) noexcept {
  const bool fits =
      wanted.count == sent.count || (wanted.allows_shorter && sent.count < wanted.count);
  return wanted.dtype == sent.dtype && fits &&
         (wanted.order == sent.order || wanted.order == MemoryOrder::kAny ||
          sent.order == MemoryOrder::kAny);
}
// An order as it came over a wire.
constexpr MemoryOrder order_of(std::uint8_t told) noexcept {
  return told <= static_cast<std::uint8_t>(MemoryOrder::kFortran) ? static_cast<MemoryOrder>(told)
                                                                  : MemoryOrder::kAny;
}

// A message under way. A handle to be given back by `test` (when it says done) or `cancel`.
enum class MessageId : std::uint32_t {};
// Of a send that was complete when `send` returned: `test` says so, and there is nothing to cancel.
inline constexpr MessageId kComplete{0xffffffff};

// What is to be done with a message's bytes instead of storing them.
class Taker {
 public:
  // Some of the message, whole elements, from `offset` bytes on; all of it in the end, each byte
  // once, in any order. They may lie at any address, and only during the call. From within any call
  // of a carrier, also another group's; calls none itself.
  virtual void take(std::size_t offset, std::span<const std::byte> bytes) noexcept = 0;

 protected:
  ~Taker() = default;
};

// A resource, one a rank and group. Used by one thread at a time. No call blocks: whoever waits
// alternates `progress` and `test`. Bytes of a send must stay unchanged, those of a receive
// untouched, until `test` said done or `cancel` returned; both mean that nobody touches them again.
class PointToPoint {
 public:
  virtual ~PointToPoint() = default;

  virtual MessageId send(const Envelope& to, std::span<const std::byte> bytes) = 0;
  virtual MessageId recv(const Envelope& from, std::span<std::byte> bytes) = 0;

  // The same with bytes that are taken as they come. Nothing, and nothing happens: this carrier
  // stores them anyway.
  virtual std::optional<MessageId> recv_to(const Envelope& from, std::size_t bytes, Taker& taker) {
    static_cast<void>(from), static_cast<void>(bytes), static_cast<void>(taker);
    return std::nullopt;
  }

  // True, once, when the message is complete; its id is free then. Throws comm-level errors (a
  // message whose dtype or count differs: EnvelopeMismatch). `received`, where given, gets the
  // envelope as the sender wrote it.
  virtual bool test(MessageId message, Envelope* received = nullptr) = 0;

  // Moves whatever is under way; true when something moved.
  virtual bool progress() = 0;

  // The same for who waits for messages of its own: what no receive asks for may stay where it is,
  // where it is taken with fewer copies, as long as no send of this rank's waits.
  virtual bool progress_wanted() { return progress(); }

  // How many messages have come to an end so far, or failed. While this stays the same, `test` has
  // nothing new to say of any message. Absent: this carrier finds that out in `test`.
  virtual std::optional<std::uint64_t> ended() const noexcept { return std::nullopt; }

  // How often this rank has moved anything, where all its messages under way wait for their match.
  // Absent: a message is partly moved, or this carrier cannot tell.
  virtual std::optional<std::uint64_t> moves_at_rest() const noexcept { return std::nullopt; }

  virtual void cancel(MessageId message) noexcept = 0;

  // A message that has come for a receive like `wanted`, whatever its dtype and count, and that no
  // receive has taken: its envelope, with the sender's rank; of several from one rank the first.
  // Carriers of messages that hocket alone sends say nothing.
  virtual std::optional<Envelope> waiting(const Envelope& wanted) {
    static_cast<void>(wanted);
    return std::nullopt;
  }

  // Where a message to or from `peer` has begun and not ended: a number that changes as parts of
  // what it sends come in. For carriers that lose what is on its way when a connection breaks;
  // others, which bring all that a rank has sent, say nothing.
  virtual std::optional<std::uint64_t> owed(int peer) {
    static_cast<void>(peer);
    return std::nullopt;
  }
};

// The two sides of a message disagree. Caught by the communicator, which makes the Mismatch that
// users see.
struct EnvelopeMismatch {
  Envelope expected;
  Envelope received;
};

}  // namespace hocket::engine
