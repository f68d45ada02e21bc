#include "comm/allocation.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/world.h"

namespace hocket::comm {
namespace {

// Words that are told instead of an offset, which is never as small.
constexpr std::uint64_t kNoRoom = 0;
constexpr std::uint64_t kNothing = 1;

}  // namespace

std::vector<std::uint64_t> allocate_together(CommunicatorImpl& communicator,
                                             const engine::Signature& shown,
                                             const Allocation& own,
                                             std::optional<Duration> deadline) {
  communicator.require_usable();
  control::HostControl& host = communicator.world()->host();
  std::vector<std::uint64_t> told(static_cast<std::size_t>(communicator.size()));
  std::uint64_t mine = own.bytes == 0 ? kNothing : kNoRoom;
  std::string reason;
  const auto give_back = [&] {
    for (int i = 0; mine > kNothing && i < own.holders; ++i) host.release(mine);
  };
  // What others have released before they come here counts at the second try.
  for (int tries = 0; tries < 2; ++tries) {
    try {
      if (mine == kNoRoom) {
        mine = host.allocate(own.bytes, own.holders);
        if (own.format) own.format(host.at(mine));
      }
    } catch (const SystemError& error) {
      reason = error.what();
    }
    try {
      communicator.run_as(shown,
                          {.kind = engine::Kind::kAllGather,
                           .in = {&mine, 1, DType::kUInt64},
                           .out = {told.data(), told.size(), DType::kUInt64},
                           .deadline = deadline});
    } catch (const InvalidArgument&) {
      give_back();
      throw;
    }
    const auto without = std::find(told.begin(), told.end(), kNoRoom);
    if (without == told.end()) break;
    if (tries == 0) continue;
    give_back();
    throw InvalidArgument(fmt::format(
        "rank {} has no shared memory left for {}: {}",
        without - told.begin(),
        own.what,
        reason.empty() ? "free symmetric arrays and groups, or set HOCKET_SEGMENT_GIB to more"
                       : reason));
  }
  std::replace(told.begin(), told.end(), kNothing, std::uint64_t{0});
  return told;
}

}  // namespace hocket::comm
