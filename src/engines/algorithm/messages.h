// What algorithms say messages with. An algorithm is a coroutine that posts messages and awaits
// them:
//
//     Message in = at.recv(left, block);
//     Message out = at.send(right, other_block);
//     co_await at.completed(in, out);
//
// Messages are cancelled by going out of scope, so that destroying a pending task takes all of its
// messages back before the memory they refer to goes away. Declare memory before messages.
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

// A resource: a message under way, or none. Movable. Destroying one under way cancels it, after
// which nobody touches its bytes.
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

  // True when complete, from then on. Throws engine::EnvelopeMismatch.
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

// One rank's end of a call: who it is and how it reaches the others. A value, copied into every
// coroutine; the carrier must outlive it.
class Endpoint {
 public:
  Endpoint(engine::PointToPoint& carrier,
           const engine::GroupFacts& facts,
           const engine::Call& call);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // Bytes of an element of the call's dtype.
  std::size_t element() const noexcept { return element_; }
  // The same end for messages of another element type.
  Endpoint as(DType dtype) const noexcept {
    Endpoint other = *this;
    other.dtype_ = dtype;
    other.element_ = size_of(dtype);
    return other;
  }
  int ahead(int by) const noexcept { return wrap(rank_ + by, size_); }
  int behind(int by) const noexcept { return wrap(rank_ - by, size_); }

  // Whole elements of the call's dtype. The message must be destroyed before the bytes are.
  Message send(int peer, std::span<const std::byte> bytes) const {
    return {*carrier_, carrier_->send(envelope(peer, bytes.size()), bytes)};
  }
  Message recv(int peer, std::span<std::byte> bytes) const {
    return {*carrier_, carrier_->recv(envelope(peer, bytes.size()), bytes)};
  }
  // The same where the carrier hands over the bytes as they come; else nothing.
  std::optional<Message> recv_to(int peer, std::size_t bytes, engine::Taker& taker) const {
    const auto id = carrier_->recv_to(envelope(peer, bytes), bytes, taker);
    if (!id) return std::nullopt;
    return Message(*carrier_, *id);
  }

  // To be awaited: until the messages, which must outlive the wait, are complete.
  auto completed(Message& one) const noexcept {
    return engine::until([carrier = carrier_, &one] {
      carrier->progress();
      return one.complete();
    });
  }
  auto completed(Message& one, Message& other) const noexcept {
    return engine::until([carrier = carrier_, &one, &other] {
      carrier->progress();
      const bool first = one.complete();  // both are tested, so that either may report an error
      return other.complete() && first;
    });
  }
  // Without messages: until `condition()`, which is asked after each bit of progress.
  template <typename Condition>
  auto met(Condition condition) const noexcept {
    return engine::until([carrier = carrier_, condition = std::move(condition)]() mutable {
      carrier->progress();
      return condition();
    });
  }
  // Of all; the list is empty then. Where it is empty before, nothing is moved: what comes before
  // its receive is posted is copied once more.
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

// An array and where its parts lie. Values that own nothing.
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

// Copies unless the two are the same place, which is what in place means.
void place(std::span<std::byte> out, std::span<const std::byte> in) noexcept;

}  // namespace hocket::algorithm
