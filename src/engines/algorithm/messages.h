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

// A resource: a message in progress, or none. It can be moved. The destructor cancels it; after
// that its bytes are not accessed.
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

  // Returns true once the message is complete. Throws engine::EnvelopeMismatch.
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

// One rank's end of a call: its number, and its connection to the other ranks. A value that is
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
  int ahead(int by) const noexcept { return wrap(rank_ + by, size_); }
  int behind(int by) const noexcept { return wrap(rank_ - by, size_); }

  // Post messages of whole elements of the call's dtype. The message must be destroyed before its
  // bytes.
  Message send(int peer, std::span<const std::byte> bytes) const {
    return {*carrier_, carrier_->send(envelope(peer, bytes.size()), bytes)};
  }
  Message recv(int peer, std::span<std::byte> bytes) const {
    return {*carrier_, carrier_->recv(envelope(peer, bytes.size()), bytes)};
  }
  // Does the same with a consumer of the bytes. Returns nothing if the carrier does not support
  // that.
  std::optional<Message> recv_to(int peer, std::size_t bytes, engine::Taker& taker) const {
    const auto id = carrier_->recv_to(envelope(peer, bytes), bytes, taker);
    if (!id) return std::nullopt;
    return Message(*carrier_, *id);
  }

  // To be awaited: waits until the messages are complete. They must outlive the wait.
  auto completed(Message& one) const noexcept {
    return engine::until([carrier = carrier_, &one] {
      carrier->progress();
      return one.complete();
    });
  }
  auto completed(Message& one, Message& other) const noexcept {
    return engine::until([carrier = carrier_, &one, &other] {
      carrier->progress();
      const bool first = one.complete();  // tests both, because either may report an error
      return other.complete() && first;
    });
  }
  // Waits until `condition()` is true. It is called after each progress.
  template <typename Condition>
  auto met(Condition condition) const noexcept {
    return engine::until([carrier = carrier_, condition = std::move(condition)]() mutable {
      carrier->progress();
      return condition();
    });
  }
  // Waits for all messages; the list is then empty. An empty list causes no progress. A message
  // that arrives before its receive is posted would need an additional copy.
  auto completed(std::vector<Message>& messages) const noexcept {
    return engine::until([carrier = carrier_, &messages] {
      if (messages.empty()) return true;
      carrier->progress();
      return drop_complete(messages);
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

// An array and the positions of its parts. Values that own nothing.
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

// Copies, unless both are the same memory, as in place.
void place(std::span<std::byte> out, std::span<const std::byte> in) noexcept;

}  // namespace hocket::algorithm
