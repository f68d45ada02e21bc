#include "calls/device/relay.h"

#include "calls/call/core.h"
#include "calls/call/messages.h"

namespace hocket::device {

using engine::Envelope;
using engine::Task;

namespace {

// Carries message `number` through the host, once the message before it has begun and the copies
// are on the host. The task keeps `staged` alive.
Task carry(std::shared_ptr<StagedExchange> staged,
           std::shared_ptr<std::uint64_t> begun,
           std::uint64_t number,
           call::Core* owner,
           Envelope envelope,
           std::span<std::byte> bytes,
           bool sends) {
  co_await engine::until([&] { return *begun + 1 == number && staged->is_here(); });
  engine::PointToPoint& via = owner->messages();
  call::OwnedMessage message(via, sends ? via.send(envelope, bytes) : via.recv(envelope, bytes));
  *begun = number;
  co_await engine::until([&] {
    via.progress();
    return message.done();
  });
}

}  // namespace

DeviceRelay::DeviceRelay(call::Core& owner)
    : owner_(owner),
      counts_(static_cast<std::size_t>(owner.size())),
      owed_(static_cast<std::size_t>(owner.size())) {}

void DeviceRelay::count_owed(std::span<const MessageCounts> theirs) {
  const auto missing = [](std::uint32_t other, std::uint32_t own) {
    return other > own ? other - own : 0;
  };
  for (std::size_t rank = 0; rank < owed_.size(); ++rank) {
    owed_[rank] = {.sent = missing(theirs[rank].received, counts_[rank].sent),
                   .received = missing(theirs[rank].sent, counts_[rank].received)};
  }
}

bool DeviceRelay::holds_streams() noexcept {
  std::erase_if(awaited_, [](const auto& staged) { return staged.expired(); });
  return !awaited_.empty();
}

void DeviceRelay::exchange(const std::shared_ptr<StagedExchange>& staged,
                           std::span<const Outgoing> outgoing,
                           std::span<const Incoming> incoming,
                           Duration allowed) {
  if (!incoming.empty()) awaited_.push_back(staged);
  const auto count = [](std::uint32_t& made, std::uint32_t& owed) {
    ++made;
    if (owed > 0) --owed;
  };
  for (std::size_t i = 0; i < outgoing.size(); ++i) {
    const auto to = static_cast<std::size_t>(outgoing[i].destination);
    count(counts_[to].sent, owed_[to].sent);
    start(staged, outgoing[i].destination, outgoing[i].in, staged->outgoing()[i], true, allowed);
  }
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    const auto from = static_cast<std::size_t>(incoming[i].source);
    count(counts_[from].received, owed_[from].received);
    start(staged, incoming[i].source, incoming[i].out, staged->incoming()[i], false, allowed);
  }
}

void DeviceRelay::start(const std::shared_ptr<StagedExchange>& staged,
                        int peer,
                        ConstArrayView array,
                        std::byte* copy,
                        bool sends,
                        Duration allowed) {
  const Envelope envelope{
      .peer = peer, .tag = engine::kStagedTag, .dtype = array.dtype(), .count = array.count()};
  owner_.message_calls.start(
      carry(staged, begun_, ++last_, &owner_, envelope, {copy, array.bytes()}, sends),
      {envelope, sends},
      allowed);
}

}  // namespace hocket::device
