// The interface of an engine that carries messages between two ranks of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "hocket/types.h"

namespace hocket::engine {

// Messages with the same peer, direction and tag arrive in the order of sending. Different tags are
// independent. Users' tags are their int; hocket's own tags are larger.
using Tag = std::uint64_t;
inline constexpr Tag kCollectiveTag = Tag{1} << 32;
inline constexpr Tag kStagedTag = Tag{1} << 33;  // messages of GPUs
inline constexpr Tag kCallTag = Tag{1} << 63;    // larger tags each belong to one collective call
inline constexpr int kAnyPeer = -1;
inline constexpr Tag kAnyTag = kCollectiveTag - 1;  // for a receive: any tag of the users

// The header of a message. The receiver compares it with the message that it expects.
struct Envelope {
  int peer = 0;  // the destination; the source, or kAnyPeer
  Tag tag = kCollectiveTag;
  DType dtype = DType::kUInt8;
  MemoryOrder order = MemoryOrder::kAny;
  std::uint64_t count = 0;  // elements
  // These are not sent. For a receive: the message may have fewer elements, or more, of which the
  // first ones are stored.
  bool allows_shorter = false;
  bool allows_longer = false;
  // For a send: it ends only when its receive has begun.
  bool synchronous = false;
};

// Returns whether a receive accepts a message from `source` with `tag`.
constexpr bool is_for(const Envelope& wanted, int source, Tag tag) noexcept {
  return (wanted.peer == kAnyPeer || wanted.peer == source) &&
         (wanted.tag == tag || (wanted.tag == kAnyTag && tag < kAnyTag));
}
// Returns whether two receives may accept one message.
constexpr bool may_compete(const Envelope& a, const Envelope& b) noexcept {
  return is_for({.peer = kAnyPeer, .tag = a.tag}, kAnyPeer, b.tag) ||
         is_for({.peer = kAnyPeer, .tag = b.tag}, kAnyPeer, a.tag);
}

// Returns whether a sent message fits the expected one, apart from peer and tag.
constexpr bool is_alike(const Envelope& wanted, const Envelope& sent) noexcept {
  const bool fits = wanted.count == sent.count ||
                    (wanted.allows_shorter && sent.count < wanted.count) ||
                    (wanted.allows_longer && sent.count > wanted.count);
  return wanted.dtype == sent.dtype && fits &&
         (wanted.order == sent.order || wanted.order == MemoryOrder::kAny ||
          sent.order == MemoryOrder::kAny);
}
// Converts an order that came over a wire.
constexpr MemoryOrder order_of(std::uint8_t told) noexcept {
  return told <= static_cast<std::uint8_t>(MemoryOrder::kFortran) ? static_cast<MemoryOrder>(told)
                                                                  : MemoryOrder::kAny;
}

// A message in progress. The handle is returned by `test`, when it reports completion, or by
// `cancel`.
enum class MessageId : std::uint32_t {};
// The id of a send that was complete when `send` returned. `test` says so, and there is nothing to
// cancel.
inline constexpr MessageId kComplete{0xffffffff};

// A consumer of a message's bytes, instead of memory that stores them.
class Taker {
 public:
  // Gets a part of the message: whole elements, from `offset` bytes on. Each byte comes once, and
  // parts come in any order. `bytes` may have any address and is valid only during the call. Any
  // call of a carrier may call this, also one of another group. It must not call the carrier.
  virtual void take(std::size_t offset, std::span<const std::byte> bytes) noexcept = 0;

 protected:
  ~Taker() = default;
};

// A resource, one for each rank and group. One thread at a time uses it. No call blocks: a waiting
// thread alternates `progress` and `test`. The bytes of a send must stay unchanged, and those of a
// receive untouched, until `test` has reported completion or `cancel` has returned. After that the
// carrier does not access them.
class PointToPoint {
 public:
  virtual ~PointToPoint() = default;

  virtual MessageId send(const Envelope& to, std::span<const std::byte> bytes) = 0;
  virtual MessageId recv(const Envelope& from, std::span<std::byte> bytes) = 0;

  // Does the same, but passes the bytes to a consumer. Returns nothing, and does nothing, if this
  // carrier always stores the bytes.
  virtual std::optional<MessageId> recv_to(const Envelope& from, std::size_t bytes, Taker& taker) {
    static_cast<void>(from), static_cast<void>(bytes), static_cast<void>(taker);
    return std::nullopt;
  }

  // Returns true once, when the message is complete. Its id is then free. Throws errors such as
  // EnvelopeMismatch, for a message whose dtype or count differs. `received`, if given, gets the
  // envelope as the sender wrote it.
  virtual bool test(MessageId message, Envelope* received = nullptr) = 0;

  // Moves all messages in progress. Returns true if something moved.
  virtual bool progress() = 0;

  // Does the same for a thread that waits for its own messages. A carrier may leave messages
  // without a receive where they are, if taking them later needs fewer copies. It must not do so
  // while a send of this rank waits.
  virtual bool progress_wanted() { return progress(); }

  // Returns how many messages have ended or failed so far. While the number does not change, `test`
  // has no news of any message. Absent: this carrier finds that out in `test`.
  virtual std::optional<std::uint64_t> ended() const noexcept { return std::nullopt; }

  // Returns how often this rank has moved anything, if all its pending messages wait for a match.
  // Absent: a message is partly moved, or this carrier cannot tell.
  virtual std::optional<std::uint64_t> moves_at_rest() const noexcept { return std::nullopt; }

  virtual void cancel(MessageId message) noexcept = 0;

  // Returns the envelope, with the sender's rank, of a message that has arrived for a receive like
  // `wanted` and has not been received. Its dtype and count do not matter. Of several from one rank
  // it is the first. Carriers that move only hocket's own messages return nothing.
  virtual std::optional<Envelope> waiting(const Envelope& wanted) {
    static_cast<void>(wanted);
    return std::nullopt;
  }

  // Returns a number if a message to or from `peer` has begun and not ended. The number changes as
  // data from the peer arrives. It is for carriers that lose data in transfer when a connection
  // breaks. Other carriers deliver all that a rank has sent, and return nothing.
  virtual std::optional<std::uint64_t> owed(int peer) {
    static_cast<void>(peer);
    return std::nullopt;
  }
};

// The two sides of a message disagree. The communicator catches this and throws the Mismatch that
// users see.
struct EnvelopeMismatch {
  Envelope expected;
  Envelope received;
};

}  // namespace hocket::engine
