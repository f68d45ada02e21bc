// The messages of algorithms. An algorithm is a coroutine that posts messages and awaits them:
//
//     Message in = at.recv(left, block);
//     Message out = at.send(right, other_block);
//     co_await at.completed(in, out);
//
// A message is cancelled when it goes out of scope. So the destruction of a pending task cancels
// all of its messages before their memory is freed. Declare memory before messages.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/call.h"
#include "engine/point_to_point.h"
#include "engine/task.h"
#include "engines/algorithm/ranges.h"

namespace hocket::algorithm {

// Await the result: it waits until `condition()` is true, and calls `progress` meanwhile. It asks
// the condition once before the first `progress`.
template <typename Condition>
auto until_complete(engine::PointToPoint& carrier, Condition condition) noexcept {
  return engine::until([&carrier, condition, is_first = true]() mutable {
    if (std::exchange(is_first, false) && condition()) return true;
    carrier.progress();
    return condition();
  });
}

// A message in progress, or none. It can be moved. The destructor cancels a message that is not
// complete; after that the message's bytes are not accessed. A resource.
class Message {
 public:
  Message() noexcept = default;
  Message(engine::PointToPoint& carrier, engine::MessageId id) noexcept
      : carrier_(id == engine::kComplete ? nullptr : &carrier), id_(id) {}
  Message(Message&& other) noexcept
      : carrier_(std::exchange(other.carrier_, nullptr)), id_(other.id_) {}
  Message& operator=(Message&& other) noexcept {
    if (this != &other) {
      cancel();
      carrier_ = std::exchange(other.carrier_, nullptr);
      id_ = other.id_;
    }
    return *this;
  }
  ~Message() { cancel(); }

  // Returns whether the message is complete. Throws engine::EnvelopeMismatch if the peer's message
  // has a different length or element type.
  bool complete() {
    if (carrier_ == nullptr) return true;
    if (!carrier_->test(id_)) return false;
    carrier_ = nullptr;
    return true;
  }

 private:
  void cancel() noexcept {
    if (carrier_ != nullptr) std::exchange(carrier_, nullptr)->cancel(id_);
  }

  engine::PointToPoint* carrier_ = nullptr;
  engine::MessageId id_{};
};

// One rank's view of a call: its rank, and its connection to the other ranks. A value that is
// copied into every coroutine. The carrier must outlive it.
class Endpoint {
 public:
  Endpoint(engine::PointToPoint& carrier,
           const engine::GroupFacts& facts,
           const engine::Call& call);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // Returns the bytes of an element of the call's dtype.
  std::size_t element() const noexcept { return element_; }
  // Returns the same endpoint for messages of another element type.
  Endpoint as(DType dtype) const noexcept {
    Endpoint other = *this;
    other.dtype_ = dtype;
    other.element_ = size_of(dtype);
    return other;
  }
  // Return the rank that is `by` ranks ahead or behind, modulo the size.
  int ahead(int by) const noexcept { return wrap(rank_ + by, size_); }
  int behind(int by) const noexcept { return wrap(rank_ - by, size_); }

  // Post messages of whole elements of the endpoint's dtype. The returned Message must be destroyed
  // before the memory of its bytes.
  Message send(int peer, std::span<const std::byte> bytes) const {
    return {*carrier_, carrier_->send(envelope(peer, bytes.size()), bytes)};
  }
  Message recv(int peer, std::span<std::byte> bytes) const {
    return {*carrier_, carrier_->recv(envelope(peer, bytes.size()), bytes)};
  }
  // Posts a receive whose bytes go to `taker` as they arrive. Returns nothing if the carrier does
  // not support this.
  std::optional<Message> recv_to(int peer, std::size_t bytes, engine::Taker& taker) const {
    const auto id = carrier_->recv_to(envelope(peer, bytes), bytes, taker);
    if (!id) return std::nullopt;
    return Message(*carrier_, *id);
  }

  // Await the result of the three functions: it waits until the messages are complete. The messages
  // must outlive the wait. If they are already complete, `progress` is not called, which between
  // hosts saves a system call.
  auto completed(Message& one) const noexcept {
    return until_complete(*carrier_, [&one] { return one.complete(); });
  }
  auto completed(Message& one, Message& other) const noexcept {
    return until_complete(*carrier_, [&one, &other] {
      const bool first = one.complete();  // tests both, because either may report an error
      return other.complete() && first;
    });
  }
  // Waits for all messages of the list. Afterwards the list is empty.
  auto completed(std::vector<Message>& messages) const noexcept {
    return until_complete(*carrier_, [&messages] { return drop_complete(messages); });
  }
  // Await the result: it waits until `condition()` is true, and asks the condition after each
  // `progress`.
  template <typename Condition>
  auto met(Condition condition) const noexcept {
    return engine::until([carrier = carrier_, condition = std::move(condition)]() mutable {
      carrier->progress();
      return condition();
    });
  }

 private:
  static bool drop_complete(std::vector<Message>& messages);
  engine::Envelope envelope(int peer, std::size_t bytes) const noexcept {
    return {.peer = peer, .tag = tag_, .dtype = dtype_, .count = bytes / element_};
  }

  engine::PointToPoint* carrier_;
  engine::Tag tag_;
  std::size_t element_;
  int rank_;
  int size_;
  DType dtype_;
};

// An array and the positions of its parts. Views.
struct Array {
  std::byte* data = nullptr;
  Parts parts;

  std::span<std::byte> part(int rank) const noexcept {
    const Range range = parts.of(rank);
    return {data + range.first, range.length};
  }
};
struct ConstArray {
  const std::byte* data = nullptr;
  Parts parts;

  std::span<const std::byte> part(int rank) const noexcept {
    const Range range = parts.of(rank);
    return {data + range.first, range.length};
  }
};

// Copies `in` to `out`. Does nothing if both are the same memory, as in calls in place.
void place(std::span<std::byte> out, std::span<const std::byte> in) noexcept;

}  // namespace hocket::algorithm
