#include "engines/algorithm/messages.h"

#include "foundation/base/hash.h"
#include "foundation/core/reduce.h"

namespace hocket::algorithm {
namespace {

// Returns the tag of a call's messages. It contains the call's number and a hash of its signature,
// so messages of different calls are never matched. If ranks made different calls, their messages
// stay unmatched. The communicator compares the records of all ranks and reports the difference.
engine::Tag tag_of(const engine::Call& call) noexcept {
  const engine::Signature& s = call.signature;
  const std::uint64_t what =
      static_cast<std::uint64_t>(s.kind) << 24 | static_cast<std::uint64_t>(s.dtype) << 16 |
      static_cast<std::uint64_t>(s.op) << 8 | static_cast<std::uint64_t>(s.memory);
  std::uint64_t hash = base::mix(base::kHashSeed, what);
  hash = base::mix(hash, static_cast<std::uint64_t>(s.root));
  hash = base::mix(hash, s.count);
  hash = base::mix(hash, s.digest);
  hash = base::mix(hash, s.symmetric);
  constexpr std::uint64_t kLow = 0xffffffffu;
  return engine::kCallTag | (hash & ~kLow) | (call.sequence & kLow);
}

}  // namespace

Endpoint::Endpoint(engine::PointToPoint& carrier,
                   const engine::GroupFacts& facts,
                   const engine::Call& call)
    : carrier_(&carrier),
      tag_(tag_of(call)),
      element_(size_of(call.signature.dtype)),
      rank_(facts.rank),
      size_(facts.size),
      dtype_(call.signature.dtype) {}

bool Endpoint::drop_complete(std::vector<Message>& messages) {
  std::erase_if(messages, [](Message& message) { return message.complete(); });
  return messages.empty();
}

void place(std::span<std::byte> out, std::span<const std::byte> in) noexcept {
  if (out.data() != in.data()) {
    core::copy(out.data(), in.data(), in.size(), core::Stores::kCached);
  }
}

}  // namespace hocket::algorithm
