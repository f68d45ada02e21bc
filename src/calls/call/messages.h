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

// A resource: a message in progress. The destructor cancels it, synchronously, unless it has been
// seen done.
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

  // See engine::PointToPoint::withdraw.
  bool withdraw() noexcept { return !done_ && (done_ = via_->withdraw(id_)); }

  // Throws engine::EnvelopeMismatch at each call if the two sides disagree.
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

// A resource: a program's message. It ends when its buffer may be used again.
struct MessageInFlight {
  failure::MessageCall call;
  OwnedMessage owned;
  TracedMessage traced;
  engine::Envelope sender;  // for a received message: the envelope as it was sent
  bool is_withdrawn = false;

  // Writes the end of the message into the trace. Called once.
  void end(bool failed) noexcept;
};

// Returns a task that ends once a message that matches `wanted` has arrived. `found` must outlive
// it.
engine::Task await(engine::PointToPoint& via, engine::Envelope wanted, Received& found);

// The program's view of a received message.
Received received_of(const engine::Envelope& sent) noexcept;

// True if the sent array shares memory with an array that is received into.
bool is_received_into(ConstArrayView in, std::span<const Incoming> incoming) noexcept;

}  // namespace hocket::call
