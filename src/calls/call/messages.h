// Messages between two ranks, over a PointToPoint.
#pragma once

#include <memory>
#include <utility>

#include "calls/call/request.h"
#include "calls/call/tracing.h"
#include "engine/point_to_point.h"
#include "engine/task.h"
#include "hocket/communicator.h"
#include "membership/failure/inquiry.h"

namespace hocket::call {

// A resource: a message under way, taken back, synchronously, unless it was seen done.
class OwnedMessage {
 public:
  OwnedMessage() noexcept = default;  // none
  OwnedMessage(engine::PointToPoint& via, engine::MessageId id) noexcept
      : via_(&via), id_(id), done_(id == engine::kComplete) {}
  OwnedMessage(OwnedMessage&& other) noexcept
      : via_(other.via_), id_(other.id_), done_(std::exchange(other.done_, true)) {}
  OwnedMessage& operator=(OwnedMessage&& other) noexcept {
    if (this != &other) {
      take_back();
      via_ = other.via_;
      id_ = other.id_;
      done_ = std::exchange(other.done_, true);
    }
    return *this;
  }
  ~OwnedMessage() { take_back(); }

  void take_back() noexcept {
    if (!std::exchange(done_, true)) via_->cancel(id_);
  }

  // Throws engine::EnvelopeMismatch where the two sides disagree, each time.
  bool done(engine::Envelope* received = nullptr) {
    if (!done_) done_ = via_->test(id_, received);
    return done_;
  }
  engine::PointToPoint& via() const noexcept { return *via_; }

 private:
  engine::PointToPoint* via_ = nullptr;
  engine::MessageId id_{};
  bool done_ = true;
};

// A resource: what a program sends or receives. It ends when its bytes may be used again.
struct MessageInFlight {
  failure::MessageCall call;
  OwnedMessage owned;
  TracedMessage traced;
  engine::Envelope sender;  // of one that has been received: as it was sent

  // Tells the trace. Once.
  void end(bool failed) noexcept;
};

// Ends when a message has come that `wanted` would take; `found` must outlive it.
engine::Task await(engine::PointToPoint& via, engine::Envelope wanted, Received& found);

// What a program is told of a message.
Received received_of(const engine::Envelope& sent) noexcept;

// Whether an array that is sent shares memory with one that is received into.
bool is_received_into(ConstArrayView in, std::span<const Incoming> incoming) noexcept;

}  // namespace hocket::call
