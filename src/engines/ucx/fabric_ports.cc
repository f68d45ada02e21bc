// Dispatches incoming messages to the groups that they are for.
#include <cstring>
#include <utility>

#include "engines/ucx/fabric.h"

namespace hocket::engines::ucx {

namespace {

constexpr std::size_t kMostEarly = std::size_t{64} << 20;

}  // namespace

UcsStatus Fabric::on_message(void* argument,
                             const void* header,
                             std::size_t header_length,
                             void* data,
                             std::size_t length,
                             const AmReceiveParam* param) {
  auto& self = *static_cast<Fabric*>(argument);
  MessageHeader read;
  // No rank of this job sends such messages.
  if (header_length != sizeof(read) || (param->attributes & AmReceiveParam::kRendezvous) != 0) {
    return UcsStatus::kOk;
  }
  std::memcpy(&read, header, sizeof(read));
  if (static_cast<std::uint8_t>(read.type) < kTypes) {
    self.take(read, {static_cast<const std::byte*>(data), length});
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
  if (closed_.contains(header.group) || early_bytes_ + payload.size() > kMostEarly) return;
  early_bytes_ += payload.size();
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
  for (const Unexpected& message : waiting) {
    early_bytes_ -= message.payload.size();
    port.take(message.header, message.payload);
  }
}

void Fabric::close(std::uint64_t id) noexcept {
  ports_.erase(id);
  closed_.insert(id);
}

}  // namespace hocket::engines::ucx
