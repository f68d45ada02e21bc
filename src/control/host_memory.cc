// The memory that ranks allocate for each other, each from its own stripe of the segment.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/deadline.h"
#include "base/poll.h"
#include "control/host.h"
#include "control/host_layout.h"
#include "hocket/error.h"
#include "os/process/process_exit.h"

namespace hocket::control {
namespace {

constexpr std::size_t kLarge = 1 << 20;  // from here on it is worth looking for released memory

constexpr int kHoldBits = 64;
static_assert(HostControl::kMostRanks + 1 == 31 * kHoldBits);

struct Hold {
  std::size_t word;
  std::uint64_t bit;
};
Hold hold_of(int holder) {
  const auto number = static_cast<unsigned>(holder + 1);
  return {.word = number / kHoldBits, .bit = std::uint64_t{1} << (number % kHoldBits)};
}

// A process that has died may write for a moment yet, by another processor or a device.
constexpr std::chrono::seconds kStillWrites{1};
// The same where this process cannot see whether that one is there yet: it may take long to go.
constexpr std::chrono::seconds kMayStillWrite{60};
// How long memory is waited for that dead ranks hold: their processes end meanwhile.
constexpr std::chrono::seconds kMostPatience{5};

BlockHeader& block_at(std::byte* data) { return *reinterpret_cast<BlockHeader*>(data); }

}  // namespace

std::byte* HostControl::at(std::uint64_t offset, std::size_t bytes) const {
  if (offset > segment_->size() || bytes > segment_->size() - offset) {
    throw SystemError("a peer named memory outside of the job's segment", EFAULT);
  }
  return at(offset);
}

std::uint64_t HostControl::allocate(std::size_t bytes, std::span<const int> holders) {
  const std::lock_guard lock(books_);
  if (live_.size() >= collect_at_ || bytes >= kLarge) collect();
  const std::size_t wanted = os::round_to_pages(bytes + sizeof(BlockHeader));
  auto offset = take(wanted);
  const auto is_decided = [&] {
    collect();
    offset = take(wanted);
    return offset || !awaits_the_dead();
  };
  if (!offset) {
    base::poll_until(is_decided, base::Deadline::in(kMostPatience), std::chrono::milliseconds(20));
  }
  if (!offset) {
    throw SystemError(
        fmt::format("no {} MiB left of this rank's {} MiB of shared memory; free symmetric arrays "
                    "and groups, or set HOCKET_SEGMENT_GIB to more",
                    wanted >> 20,
                    stripe_bytes_ >> 20),
        ENOMEM);
  }
  BlockHeader& block = block_at(at(*offset));
  block.bytes = wanted;
  for (auto& word : block.held) word.store(0, std::memory_order_relaxed);
  for (const int holder : holders) {
    const auto [word, bit] = hold_of(holder);
    block.held[word].fetch_or(bit, std::memory_order_relaxed);
  }
  live_.push_back(*offset);
  return *offset + sizeof(BlockHeader);
}

// From the free part of the stripe; absent: there is no such piece.
std::optional<std::uint64_t> HostControl::take(std::size_t bytes) {
  const auto found =
      std::find_if(free_.begin(), free_.end(), [&](const Free& f) { return f.bytes >= bytes; });
  if (found == free_.end()) return std::nullopt;
  const std::uint64_t offset = found->offset;
  found->offset += bytes;
  found->bytes -= bytes;
  if (found->bytes == 0) free_.erase(found);
  return offset;
}

void HostControl::release(std::uint64_t offset, int holder) noexcept {
  const auto [word, bit] = hold_of(holder);
  // Pairs with collect: what the holder did with the block comes before its reuse.
  block_at(at(offset - sizeof(BlockHeader))).held[word].fetch_and(~bit, std::memory_order_acq_rel);
}

void HostControl::withdraw(std::uint64_t offset) noexcept {
  for (int rank = 0; rank < ranks_; ++rank) release(offset, rank);
  ring_network();
}

bool HostControl::is_held(std::uint64_t offset) const noexcept {
  return is_held(offset, [this](int rank) { return is_gone(rank); });
}

// Whether its process can do nothing any more.
bool HostControl::is_gone(int rank) const noexcept {
  if (state(rank) != RankState::kDied) return false;
  if (end(rank) == os::kReplaced) return since_death(rank) >= kStillWrites;
  const std::uint64_t began = start(rank);
  if (began == 0) return since_death(rank) >= kMayStillWrite;
  return since_death(rank) >= kStillWrites && os::process_start(pid(rank)) != began;
}

// Whether blocks would come back were the dead gone.
bool HostControl::awaits_the_dead() const noexcept {
  return std::any_of(live_.begin(), live_.end(), [this](std::uint64_t offset) {
    const auto died = [this](int rank) { return state(rank) == RankState::kDied; };
    return !is_held(offset + sizeof(BlockHeader), died);
  });
}

template <typename Gone>
bool HostControl::is_held(std::uint64_t offset, const Gone& gone) const noexcept {
  const BlockHeader& block = block_at(at(offset - sizeof(BlockHeader)));
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto [word, bit] = hold_of(rank);
    if ((block.held[word].load(std::memory_order_acquire) & bit) != 0 && !gone(rank)) return true;
  }
  return false;
}

// Takes back the blocks that everybody has released.
void HostControl::collect() {
  const auto released = [this](std::uint64_t offset) {
    const auto [word, bit] = hold_of(kNetwork);
    const bool by_network =
        (block_at(at(offset)).held[word].load(std::memory_order_acquire) & bit) != 0;
    return !by_network && !is_held(offset + sizeof(BlockHeader));
  };
  const auto first = std::partition(
      live_.begin(), live_.end(), [&](std::uint64_t offset) { return !released(offset); });
  for (auto it = first; it != live_.end(); ++it) {
    const std::uint64_t bytes = block_at(at(*it)).bytes;
    segment_->discard(*it, bytes);
    free_.push_back({*it, bytes});
  }
  live_.erase(first, live_.end());
  std::sort(
      free_.begin(), free_.end(), [](const Free& a, const Free& b) { return a.offset < b.offset; });
  std::vector<Free> merged;
  for (const Free& f : free_) {
    if (!merged.empty() && merged.back().offset + merged.back().bytes == f.offset) {
      merged.back().bytes += f.bytes;
    } else {
      merged.push_back(f);
    }
  }
  free_ = std::move(merged);
  collect_at_ = std::max<std::size_t>(64, live_.size() * 2);
}

}  // namespace hocket::control
