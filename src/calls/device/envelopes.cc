#include "calls/device/envelopes.h"

#include "calls/call/core.h"
#include "calls/call/messages.h"

namespace hocket::device {

using engine::Envelope;
using engine::Task;

namespace {

constexpr engine::Tag kTag = engine::kStagedTag + 1;

// The contents of an envelope, as it is sent.
struct WireEnvelope {
  std::uint64_t count = 0;
  std::uint32_t dtype = 0;
  std::uint32_t unused = 0;
};

// An envelope in transfer. It outlives the call that began it.
struct Letter {
  Envelope envelope;  // describes the message between GPUs
  WireEnvelope wire = {};
  std::shared_ptr<void> open = {};  // held while it is unmatched, see DeviceEnvelopes

  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(&wire, 1)); }
  // Throws EnvelopeMismatch if the envelope from `sender` differs from the expected message.
  void compare(int sender) const {
    Envelope came = envelope;
    came.peer = sender;
    came.count = wire.count;
    came.dtype = static_cast<DType>(wire.dtype);
    if (!engine::is_alike(came, envelope)) throw engine::EnvelopeMismatch{envelope, came};
  }
};

Envelope outer(int peer) { return {.peer = peer, .tag = kTag, .count = sizeof(WireEnvelope)}; }

Envelope inner(int peer, ConstArrayView array) {
  return {.peer = peer, .tag = engine::kStagedTag, .dtype = array.dtype(), .count = array.count()};
}

// Waits until the envelope has been sent or received, and compares a received one. `who` gets the
// sender.
Task meet(call::OwnedMessage message,
          std::shared_ptr<Letter> letter,
          bool sends,
          std::shared_ptr<int> who) {
  Envelope sender;
  co_await engine::until([&] {
    message.via().progress();
    return message.done(&sender);
  });
  if (!sends) letter->compare(sender.peer);
  if (who) *who = sender.peer;
}

}  // namespace

void DeviceEnvelopes::announce(const Outgoing& message) {
  const auto letter = std::make_shared<Letter>(Letter{inner(message.destination, message.in)});
  letter->wire = {.count = message.in.count(),
                  .dtype = static_cast<std::uint32_t>(message.in.dtype())};
  engine::PointToPoint& via = owner_.messages();
  call::OwnedMessage sent(via, via.send(outer(message.destination), letter->bytes()));
  if (sent.done()) return;
  letter->open = open_;
  owner_.message_calls.start(
      meet(std::move(sent), letter, true, nullptr), {letter->envelope, true}, kForever);
}

void DeviceEnvelopes::expect(const Incoming& message) {
  const auto letter = std::make_shared<Letter>(Letter{inner(message.source, message.out)});
  letter->open = open_;
  engine::PointToPoint& via = owner_.messages();
  owner_.message_calls.start(
      meet(call::OwnedMessage(via, via.recv(outer(message.source), letter->bytes())),
           letter,
           false,
           nullptr),
      {letter->envelope, false},
      kForever);
}

int DeviceEnvelopes::await_any(const Incoming& message, Duration allowed) {
  const auto letter = std::make_shared<Letter>(Letter{inner(engine::kAnyPeer, message.out)});
  const auto who = std::make_shared<int>(-1);
  engine::PointToPoint& via = owner_.messages();
  owner_.message_calls.run(
      meet(call::OwnedMessage(via, via.recv(outer(engine::kAnyPeer), letter->bytes())),
           letter,
           false,
           who),
      {letter->envelope, false},
      allowed);
  return *who;
}

}  // namespace hocket::device
