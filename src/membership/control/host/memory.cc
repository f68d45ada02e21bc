#include "membership/control/host/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "foundation/base/deadline.h"
#include "foundation/base/poll.h"
#include "foundation/os/process/process_exit.h"
#include "hocket/error.h"
#include "membership/control/host/layout.h"

namespace hocket::control {

namespace {

constexpr std::size_t kLarge = 1 << 20;  // before a larger allocation, collect released blocks

constexpr int kHoldBits = 64;
static_assert(HostView::kMostRanks + 1 == 31 * kHoldBits);

struct Hold {
  std::size_t word;
  std::uint64_t bit;
};
Hold hold_of(int holder) {
  const auto number = static_cast<unsigned>(holder + 1);
  return {.word = number / kHoldBits, .bit = std::uint64_t{1} << (number % kHoldBits)};
}

// The time for which a dead process may still write, by another processor or a device.
constexpr std::chrono::seconds kStillWrites{1};
// The same time for a dead process that this process cannot see. Its end may take long.
constexpr std::chrono::seconds kMayStillWrite{60};
// The longest wait for memory that dead ranks hold. Their processes end in this time.
constexpr std::chrono::seconds kMostPatience{5};

BlockHeader& block_at(std::byte* data) { return *reinterpret_cast<BlockHeader*>(data); }

}  // namespace

HostMemory::HostMemory(const HostView& view,
                       std::shared_ptr<os::Segment> segment,
                       const HostShape& shape,
                       Doorbells& doorbells,
                       Liveness& liveness)
    : HostView(view),
      segment_(std::move(segment)),
      doorbells_(doorbells),
      liveness_(liveness),
      shape_(shape) {
  free_.push_back({stripe_offset(shape, self_), shape.stripe_bytes});
}

std::byte* HostMemory::at(std::uint64_t offset, std::size_t bytes) const {
  if (offset > segment_->size() || bytes > segment_->size() - offset) {
    throw SystemError("a peer named memory outside of the job's segment", EFAULT);
  }
  return at(offset);
}

std::uint64_t HostMemory::allocate(std::size_t bytes, std::span<const int> holders) {
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
                    shape_.stripe_bytes >> 20),
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

// Takes a piece from the free part of the stripe. Absent: there is no large enough piece.
std::optional<std::uint64_t> HostMemory::take(std::size_t bytes) {
  const auto found =
      std::find_if(free_.begin(), free_.end(), [&](const Free& f) { return f.bytes >= bytes; });
  if (found == free_.end()) return std::nullopt;
  const std::uint64_t offset = found->offset;
  found->offset += bytes;
  found->bytes -= bytes;
  if (found->bytes == 0) free_.erase(found);
  return offset;
}

void HostMemory::release(std::uint64_t offset, int holder) noexcept {
  const auto [word, bit] = hold_of(holder);
  // Pairs with `collect`: all accesses of the holder come before the block is reused.
  block_at(at(offset - sizeof(BlockHeader))).held[word].fetch_and(~bit, std::memory_order_acq_rel);
}

void HostMemory::withdraw(std::uint64_t offset) noexcept {
  for (int rank = 0; rank < ranks_; ++rank) release(offset, rank);
  doorbells_.ring_network();
}

bool HostMemory::is_held(std::uint64_t offset) const noexcept {
  return is_held(offset, [this](int rank) { return is_gone(rank); });
}

// Returns whether the rank's process has ended, so that it cannot write any more.
bool HostMemory::is_gone(int rank) const noexcept {
  if (liveness_.state(rank) != RankState::kDied) return false;
  if (liveness_.end(rank) == os::kReplaced) return liveness_.since_death(rank) >= kStillWrites;
  const std::uint64_t began = liveness_.start(rank);
  if (began == 0) return liveness_.since_death(rank) >= kMayStillWrite;
  return liveness_.since_death(rank) >= kStillWrites &&
         os::process_start(liveness_.pid(rank)) != began;
}

// Returns whether some blocks will be free once the processes of dead ranks have ended.
bool HostMemory::awaits_the_dead() const noexcept {
  return std::any_of(live_.begin(), live_.end(), [this](std::uint64_t offset) {
    const auto died = [this](int rank) { return liveness_.state(rank) == RankState::kDied; };
    return !is_held(offset + sizeof(BlockHeader), died);
  });
}

template <typename Gone>
bool HostMemory::is_held(std::uint64_t offset, const Gone& gone) const noexcept {
  const BlockHeader& block = block_at(at(offset - sizeof(BlockHeader)));
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto [word, bit] = hold_of(rank);
    if ((block.held[word].load(std::memory_order_acquire) & bit) != 0 && !gone(rank)) return true;
  }
  return false;
}

// Takes back the blocks that all holders have released.
void HostMemory::collect() {
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

std::uint64_t HostMemory::first_block(int place) const noexcept {
  return first_block_offset(shape_, place);
}

}  // namespace hocket::control
