// The header of hocket's active messages. It is in host byte order, because all ranks of a job run
// the same build. A peer wrote an incoming header, so its fields are checked before use.
#pragma once

#include <cstdint>

namespace hocket::engines::ucx {

enum class PacketType : std::uint8_t {
  kEager,    // a message without a request: the whole message, or its first bytes
  kRequest,  // a message too long to send without a request; its bytes follow a kGrant
  kGrant,    // the receiver of message `id` is ready for its bytes. If UCX moves them directly,
             // `offset` is the UCX tag
  kBulk,     // bytes of the granted message `id`, from `offset` on
  kRefuse,   // the receiver of message `id` expected the tag, dtype and count in this header
  kCancel,   // the sender of message `id` cancelled it
  kCredit,   // carries only `credit`
  kMore,     // further bytes of the eager message `number`, from `offset` on
  kTrial,    // tests a connection before there are groups; `source` is the sender's world rank
};
inline constexpr std::uint8_t kTypes = 9;

struct MessageHeader {
  std::uint64_t group = 0;
  std::uint64_t tag = 0;
  std::uint64_t count = 0;   // elements of the message
  std::uint64_t offset = 0;  // position of the payload in the message, in bytes
  std::uint64_t credit = 0;  // acknowledged bytes of eager messages, since the last credit
  std::uint32_t id = 0;      // the sender's number for the message
  std::uint32_t number = 0;  // counts the kEager and kRequest packets from this rank to the peer
  std::int32_t source = 0;   // group rank of the sender
  PacketType type = PacketType::kEager;
  std::uint8_t dtype = 0;
  std::uint8_t direct = 0;  // in kRequest: UCX moves the bytes directly
  std::uint8_t order = 0;
};
static_assert(sizeof(MessageHeader) == 56);

}  // namespace hocket::engines::ucx
