// What hocket's active messages carry in front of their bytes. Host byte order: all ranks of a job
// run one build. What comes in was written by a peer, and is checked before it is used.
#pragma once

#include <cstdint>

namespace hocket::engines::ucx {

enum class PacketType : std::uint8_t {
  kEager,    // a message unasked: all of it, or its first bytes
  kRequest,  // a message too long to send unasked; its bytes follow when they are granted
  kGrant,    // the reader of message `id` is ready for its bytes, which come under `offset` as
             // UCX's tag where UCX moves them
  kBulk,     // bytes of the granted message `id`, from `offset` on
  kRefuse,   // the reader of message `id` expected what tag, dtype and count say
  kCancel,   // the writer of message `id` took it back
  kCredit,   // nothing but the `credit`
  kMore,     // further bytes of the eager message `number`, from `offset` on
};
inline constexpr std::uint8_t kTypes = 8;

struct MessageHeader {
  std::uint64_t group = 0;
  std::uint64_t tag = 0;
  std::uint64_t count = 0;   // elements of the message
  std::uint64_t offset = 0;  // bytes
  std::uint64_t credit = 0;  // bytes of eager messages that have found their receives
  std::uint32_t id = 0;      // the sender's number of the message
  std::uint32_t number = 0;  // counts what one rank sends another as kEager and kRequest
  std::int32_t source = 0;   // the sender, in the group
  PacketType type = PacketType::kEager;
  std::uint8_t dtype = 0;
  std::uint8_t direct = 0;  // of a kRequest: UCX moves the bytes, not pieces
  std::uint8_t order = 0;
};
static_assert(sizeof(MessageHeader) == 56);

}  // namespace hocket::engines::ucx
