// A connection of two hosts of a job, over which they exchange facts; see facts.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "foundation/base/deadline.h"
#include "hocket/store.h"
#include "membership/rendezvous/wire/channel.h"
#include "membership/rendezvous/wire/handshake.h"

namespace hocket::control {

// The identity of one end of a lane. A value.
struct LaneIdentity {
  int rank = 0;  // world rank
  int size = 0;
  int epoch = 0;
  std::string job;
  Key key;  // the key of the job's lanes, which its store distributes
};

// A resource. One thread uses it. The two ends first authenticate each other as at the store: each
// proves that it knows the key, by an HMAC-SHA256 of both nonces and of this connection's binding.
// Then they exchange frames.
//
//   client   Hello     ->               Proof   ->              frames
//   server         <-  Challenge             <- Verdict         frames
//
// No input of the other end makes a function throw: the lane is closed instead.
class Lane {
 public:
  using Clock = base::Deadline::Clock;

  Lane(std::unique_ptr<rendezvous::Channel> channel,
       rendezvous::Side side,
       const LaneIdentity& identity);

  int fd() const noexcept { return channel_->fd(); }
  bool wants_to_write() const noexcept { return !to_send_.empty(); }
  // Returns whether the other host has acknowledged all sent data. Data that is not acknowledged
  // may be lost when this process ends: if more data arrives then, the kernel resets the
  // connection.
  bool is_heard() const noexcept;
  bool is_open() const noexcept { return stage_ == Stage::kOpen; }
  bool is_closed() const noexcept { return stage_ == Stage::kClosed; }
  bool was_open() const noexcept { return was_open_; }
  // Returns the world rank at the other end. Valid once the lane is open.
  int peer() const noexcept { return peer_; }
  Clock::time_point made() const noexcept { return made_; }
  Clock::time_point last_heard() const noexcept { return heard_; }
  Clock::time_point last_sent() const noexcept { return sent_at_; }
  std::size_t queued() const noexcept { return to_send_.size(); }

  // Sends one or more frames. Does nothing if the lane is not open.
  void send(std::span<const std::byte> frame);
  // Sends and receives as much data as possible without waiting. `take` gets the payload of each
  // received frame.
  using Take = std::function<void(std::span<const std::byte> payload)>;
  void move(const Take& take);
  void close() noexcept { stage_ = Stage::kClosed; }

 private:
  enum class Stage { kHello, kChallenge, kProof, kVerdict, kOpen, kClosed };

  void push(std::span<const std::byte> frame);
  void push_payload(const Bytes& payload);
  void flush();
  bool take_handshake(std::span<const std::byte> payload);
  bool take_hello(std::span<const std::byte> payload);
  bool take_challenge(std::span<const std::byte> payload);
  bool take_proof(std::span<const std::byte> payload);
  bool take_verdict(std::span<const std::byte> payload);
  rendezvous::Transcript transcript() const;

  std::unique_ptr<rendezvous::Channel> channel_;
  const LaneIdentity identity_;
  Stage stage_;
  bool was_open_ = false;
  int peer_ = -1;
  Bytes hello_;
  Bytes challenge_;
  Bytes received_;
  Bytes to_send_;
  Clock::time_point made_ = Clock::now();
  Clock::time_point heard_ = made_;
  Clock::time_point sent_at_ = made_;
};

}  // namespace hocket::control
