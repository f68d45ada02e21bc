// The interface of an engine that carries messages between two ranks of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "hocket/types.h"

namespace hocket::engine {

// Messages with the same peer, direction and tag arrive in the order of sending. Different tags are
// independent. A user's tag is an int; hocket's own tags are larger than any int.
using Tag = std::uint64_t;
inline constexpr Tag kCollectiveTag = Tag{1} << 32;
inline constexpr Tag kStagedTag = Tag{1} << 33;  // messages of GPUs
inline constexpr Tag kCallTag = Tag{1} << 63;    // and larger: each belongs to one collective call
inline constexpr int kAnyPeer = -1;
inline constexpr Tag kAnyTag = kCollectiveTag - 1;  // for a receive: any tag of the users

// The header of a message. The receiver compares it with the message that it expects.
struct Envelope {
  int peer = 0;  // a send's destination, or a receive's source, or kAnyPeer
  Tag tag = kCollectiveTag;
  DType dtype = DType::kUInt8;
  MemoryOrder order = MemoryOrder::kAny;
  std::uint64_t count = 0;  // elements
  // The members below are not sent.
  bool allows_shorter = false;  // a receive accepts a message with fewer elements
  bool allows_longer = false;   // a receive accepts more elements, and stores the first `count`
  bool synchronous = false;     // a send completes only after its receive has begun
};

// Returns whether a receive accepts a message from `source` with `tag`.
constexpr bool is_for(const Envelope& wanted, int source, Tag tag) noexcept {
  return (wanted.peer == kAnyPeer || wanted.peer == source) &&
         (wanted.tag == tag || (wanted.tag == kAnyTag && tag < kAnyTag));
}
// Returns whether some message could match both receives. Their peers are not compared.
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
// Checks and converts an order that a peer has sent. An unknown value becomes kAny.
constexpr MemoryOrder order_of(std::uint8_t told) noexcept {
  return told <= static_cast<std::uint8_t>(MemoryOrder::kFortran) ? static_cast<MemoryOrder>(told)
                                                                  : MemoryOrder::kAny;
}

// The handle of a message in progress. The carrier takes it back when `test` has returned true, and
// when `cancel` is called.
enum class MessageId : std::uint32_t {};
// The handle of a send that was complete when `send` returned. `test` returns true for it, and
// `cancel` does nothing.
inline constexpr MessageId kComplete{0xffffffff};

// Consumes the bytes of a message as they arrive, instead of memory that stores them.
class Taker {
 public:
  // Consumes a part of the message: whole elements, from byte `offset` on. Each byte comes once,
  // and parts come in any order. `bytes` may have any alignment and is valid only during the call.
  // Any call of any group's carrier may call this function. It must not call a carrier.
  virtual void take(std::size_t offset, std::span<const std::byte> bytes) noexcept = 0;

 protected:
  ~Taker() = default;
};

// Carries the messages of a group. A resource: each rank has one for each group. One thread at a
// time uses it. No call blocks: a waiting thread alternates `progress` and `test`. Until `test` has
// returned true or `cancel` has returned, the program must not change the bytes of a send, and must
// not touch the bytes of a receive. After that the carrier does not access them.
class PointToPoint {
 public:
  virtual ~PointToPoint() = default;

  virtual MessageId send(const Envelope& to, std::span<const std::byte> bytes) = 0;
  virtual MessageId recv(const Envelope& from, std::span<std::byte> bytes) = 0;

  // Receives a message of up to a few KiB that has arrived, or arrives within `polls` more looks.
  // Decreases `polls` by the looks that it takes. Sets `received` as `test` does. Returns false if
  // it receives nothing; then `recv` is next. It leaves everything to `recv` that is not simple,
  // such as a message that does not fit.
  virtual bool recv_soon(const Envelope& from,
                         std::span<std::byte> bytes,
                         int& polls,
                         Envelope& received) {
    static_cast<void>(from), static_cast<void>(bytes), static_cast<void>(polls);
    static_cast<void>(received);
    return false;
  }

  // Like `recv`, but passes the bytes to `taker`. Returns nothing, and does nothing, if this
  // carrier can only store bytes in memory.
  virtual std::optional<MessageId> recv_to(const Envelope& from, std::size_t bytes, Taker& taker) {
    static_cast<void>(from), static_cast<void>(bytes), static_cast<void>(taker);
    return std::nullopt;
  }

  // Returns true once, when the message is complete. Its handle is then free. Throws if the message
  // failed: EnvelopeMismatch if, for example, its dtype or count is not the expected one. If
  // `received` is given, it gets the envelope as the sender wrote it.
  virtual bool test(MessageId message, Envelope* received = nullptr) = 0;

  // Moves all messages in progress. Returns true if something moved.
  virtual bool progress() = 0;

  // Like `progress`, for a thread that waits for its own messages. The carrier may then leave
  // messages without a matching receive at the sender, if a later transfer needs fewer copies. It
  // must not do so while a send of this rank waits.
  virtual bool progress_wanted() { return progress(); }

  // Returns how many messages have completed or failed so far. While the number stays the same,
  // `test` has nothing new to report for any message. Absent: this carrier does not count them, and
  // the caller must ask `test`.
  virtual std::optional<std::uint64_t> ended() const noexcept { return std::nullopt; }

  // For the search for deadlocks. Returns a counter of this rank's moves if all its pending
  // messages wait for a match. Absent: a message is partly moved, or this carrier cannot tell.
  virtual std::optional<std::uint64_t> moves_at_rest() const noexcept { return std::nullopt; }

  virtual void cancel(MessageId message) noexcept = 0;

  // Cancels a receive to which no message has been matched, and returns true. For any other
  // receive, and for a send, does nothing and returns false. A carrier that moves only hocket's own
  // messages always returns false.
  virtual bool withdraw(MessageId message) noexcept {
    static_cast<void>(message);
    return false;
  }

  // Returns the envelope of a message that has arrived, and that a receive like `wanted` would
  // take. `peer` is the sender. The dtype and count of `wanted` do not matter. If several messages
  // of one rank fit, it is the first of them. A carrier that moves only hocket's own messages
  // returns nothing.
  virtual std::optional<Envelope> waiting(const Envelope& wanted) {
    static_cast<void>(wanted);
    return std::nullopt;
  }

  // Returns a number if a message to or from `peer` is in progress. The number changes as data from
  // the peer arrives. Only carriers that lose data in transfer when a connection breaks implement
  // this. Other carriers deliver all that a rank has sent, and return nothing.
  virtual std::optional<std::uint64_t> owed(int peer) {
    static_cast<void>(peer);
    return std::nullopt;
  }
};

// An exception: sender and receiver disagree about a message. The communicator catches it and
// throws the Mismatch that users see.
struct EnvelopeMismatch {
  Envelope expected;
  Envelope received;
};

}  // namespace hocket::engine
