// Messages between two ranks, as tasks over a PointToPoint.
#pragma once

#include <memory>
#include <utility>

#include "call/request.h"
#include "engine/point_to_point.h"
#include "engine/task.h"
#include "hocket/communicator.h"

namespace hocket::call {

// A resource: a message under way, taken back, synchronously, unless it was seen done.
class OwnedMessage {
 public:
  OwnedMessage(engine::PointToPoint& via, engine::MessageId id) noexcept
      : via_(&via), id_(id), done_(id == engine::kComplete) {}
  OwnedMessage(OwnedMessage&& other) noexcept
      : via_(other.via_), id_(other.id_), done_(std::exchange(other.done_, true)) {}
  OwnedMessage& operator=(OwnedMessage&&) = delete;
  ~OwnedMessage() {
    if (!done_) via_->cancel(id_);
  }

  // Throws engine::EnvelopeMismatch where the two sides disagree, each time.
  bool done(engine::Envelope* received = nullptr) {
    if (!done_) done_ = via_->test(id_, received);
    return done_;
  }
  engine::PointToPoint& via() const noexcept { return *via_; }

 private:
  engine::PointToPoint* via_;
  engine::MessageId id_;
  bool done_;
};

// Each ends when the bytes may be used again; destroying it takes the message back. `received`, if
// there is one, learns who sent.
engine::Task finish(OwnedMessage message, std::shared_ptr<Received> received);
engine::Task finish_both(OwnedMessage outgoing, OwnedMessage incoming);
// Ends when a message has come that `wanted` would take; `found` must outlive it.
engine::Task await(engine::PointToPoint& via, engine::Envelope wanted, Received& found);

// What a program is told of a message.
Received received_of(const engine::Envelope& sent) noexcept;

// Whether an array that is sent shares memory with one that is received into.
bool is_received_into(ConstArrayView in, std::span<const Incoming> incoming) noexcept;

}  // namespace hocket::call
