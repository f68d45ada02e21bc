// The header of hocket's active messages, in host byte order: all ranks of a job run one build. A
// peer wrote incoming headers, so they are checked before use.
#pragma once

#include <cstdint>

namespace hocket::engines::ucx {

enum class PacketType : std::uint8_t {
  kEager,    // a message without a request: all of it, or its first bytes
  kRequest,  // a message too long to send unasked; its bytes follow a grant
  kGrant,    // the reader of message `id` is ready for its bytes; if UCX moves them, `offset` is
             // UCX's tag
  kBulk,     // bytes of the granted message `id`, from `offset` on
  kRefuse,   // the reader of message `id` expected tag, dtype and count as given here
  kCancel,   // the writer of message `id` cancelled it
  kCredit,   // carries only the `credit`
  kMore,     // further bytes of the eager message `number`, from `offset` on
  kTrial,    // tries the way, before there are groups; `source` is the sender's rank in the world
};
inline constexpr std::uint8_t kTypes = 9;

struct MessageHeader {
  std::uint64_t group = 0;
  std::uint64_t tag = 0;
  std::uint64_t count = 0;   // elements of the message
  std::uint64_t offset = 0;  // bytes
  std::uint64_t credit = 0;  // bytes of eager messages that have been matched
  std::uint32_t id = 0;      // the sender's number for the message
  std::uint32_t number = 0;  // counts messages of type kEager and kRequest from one rank to another
  std::int32_t source = 0;   // group rank of the sender
  PacketType type = PacketType::kEager;
  std::uint8_t dtype = 0;
  std::uint8_t direct = 0;  // for kRequest: UCX moves the bytes directly
  std::uint8_t order = 0;
};
static_assert(sizeof(MessageHeader) == 56);

}  // namespace hocket::engines::ucx
