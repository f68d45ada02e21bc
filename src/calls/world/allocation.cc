#include "calls/world/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "calls/world/world.h"

namespace hocket::world {
namespace {

// Words that a rank sends in place of an offset, to tell why. An offset is never this small.
constexpr std::uint64_t kNoRoom = 0;
constexpr std::uint64_t kNothing = 1;
constexpr std::uint64_t kNoPlace = 2;

// Time limit for the list to drop groups that other ranks closed before this call.
constexpr Duration kForClosed = std::chrono::seconds(1);

// One rank's part in a call of allocate_together.
class AllocationPart {
 public:
  AllocationPart(control::HostMemory& memory, const Allocation& wanted)
      : memory_(memory), wanted_(wanted) {}

  // Allocates, and returns the word that this rank sends: an offset, or a reason.
  std::uint64_t attempt(Duration patience) {
    if (wanted_.bytes == 0) return kNothing;
    try {
      if (block_ == 0) {
        block_ = memory_.allocate(wanted_.bytes, wanted_.holders);
        if (wanted_.format) wanted_.format(memory_.at(block_));
      }
    } catch (const SystemError& error) {
      reason_ = error.what();
      return kNoRoom;
    }
    if (wanted_.enlist && entry_ == nullptr) {
      entry_ = wanted_.enlist(block_, patience);
      if (entry_ == nullptr) return kNoPlace;
    }
    return block_;
  }

  void give_back() noexcept {
    if (block_ == 0) return;
    if (entry_ == nullptr) memory_.release(block_, control::HostMemory::kNetwork);  // never listed
    memory_.withdraw(block_);
  }

  // Returns the error text for `rank`, which sent `word` because it has no memory.
  std::string refusal(std::ptrdiff_t rank, std::uint64_t word) const {
    if (word == kNoPlace) {
      return fmt::format(
          "on the host of rank {} there are {} groups between hosts already, as many as there can "
          "be; close some",
          rank,
          control::kGroups);
    }
    return fmt::format("rank {} has no shared memory left for {}: {}",
                       rank,
                       wanted_.what,
                       reason_.empty()
                           ? "free symmetric arrays and groups, or set HOCKET_SEGMENT_GIB to more"
                           : reason_);
  }

 private:
  control::HostMemory& memory_;
  const Allocation& wanted_;
  std::uint64_t block_ = 0;
  control::GroupEntry* entry_ = nullptr;
  std::string reason_;
};

bool is_refusal(std::uint64_t word) noexcept { return word == kNoRoom || word == kNoPlace; }

}  // namespace

std::vector<std::uint64_t> allocate_together(CommunicatorImpl& communicator,
                                             const engine::Signature& shown,
                                             const Allocation& own,
                                             std::optional<Duration> deadline) {
  communicator.require_usable();
  auto told = communicator.before_call(shown.kind, [&] {
    return std::vector<std::uint64_t>(static_cast<std::size_t>(communicator.size()));
  });
  AllocationPart part(communicator.world()->host().memory, own);
  // The second try gets memory that other ranks released before this call.
  for (int tries = 0; tries < 2; ++tries) {
    try {
      const std::uint64_t mine = communicator.before_call(
          shown.kind, [&] { return part.attempt(tries == 0 ? Duration::zero() : kForClosed); });
      communicator.run_as(shown,
                          {.kind = engine::Kind::kAllGather,
                           .in = {&mine, 1, DType::kUInt64},
                           .out = {told.data(), told.size(), DType::kUInt64},
                           .deadline = deadline});
    } catch (const std::exception&) {
      if (!communicator.group().failed()) part.give_back();
      throw;
    }
    const auto without = std::find_if(told.begin(), told.end(), is_refusal);
    if (without == told.end()) break;
    if (tries == 0) continue;
    part.give_back();
    throw InvalidArgument(part.refusal(without - told.begin(), *without));
  }
  std::replace(told.begin(), told.end(), kNothing, std::uint64_t{0});
  return told;
}

}  // namespace hocket::world
