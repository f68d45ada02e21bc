// Dispatches incoming messages to the ports of their groups.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engines/ucx/fabric.h"

namespace hocket::engines::ucx {

namespace {

// The number of closed groups for which late messages are still dropped.
constexpr std::size_t kMostClosed = 4096;

}  // namespace

UcsStatus Fabric::on_message(void* argument,
                             const void* header,
                             std::size_t header_length,
                             void* data,
                             std::size_t length,
                             const AmReceiveParam* param) noexcept {
  auto& self = *static_cast<Fabric*>(argument);
  MessageHeader read;
  // Drop messages that no rank of this job sends.
  if (header_length != sizeof(read) || (param->attributes & AmReceiveParam::kRendezvous) != 0) {
    return UcsStatus::kOk;
  }
  std::memcpy(&read, header, sizeof(read));
  if (static_cast<std::uint8_t>(read.type) < kTypes) {
    self.delivers_ = true;
    self.take(read, {static_cast<const std::byte*>(data), length});
    self.delivers_ = false;
  }
  return UcsStatus::kOk;
}

void Fabric::take(const MessageHeader& header, std::span<const std::byte> payload) {
  came_ = true;
  if (header.type == PacketType::kTrial) return take_trial(header);
  if (const auto found = ports_.find(header.group); found != ports_.end()) {
    found->second->take(header, payload);
    return;
  }
  if (std::ranges::find(closed_, header.group) != closed_.end()) return;
  // Senders limit the bytes that they send before an answer. So this memory has a limit, too.
  unexpected_[header.group].push_back({header, {payload.begin(), payload.end()}});
}

void Fabric::take_trial(const MessageHeader& header) {
  if (header.source < 0 || static_cast<std::size_t>(header.source) >= peers_.size()) return;
  Peer& peer = peers_[static_cast<std::size_t>(header.source)];
  peer.was_heard = !peer.is_on_trial;
  peer.is_on_trial = false;
}

void Fabric::open(std::uint64_t id, Port& port) {
  ports_[id] = &port;
  const auto found = unexpected_.find(id);
  if (found == unexpected_.end()) return;
  const auto waiting = std::move(found->second);
  unexpected_.erase(found);
  for (const Unexpected& message : waiting) port.take(message.header, message.payload);
}

void Fabric::close(std::uint64_t id) noexcept {
  ports_.erase(id);
  closed_.push_back(id);
  if (closed_.size() > kMostClosed) closed_.pop_front();
}

}  // namespace hocket::engines::ucx
