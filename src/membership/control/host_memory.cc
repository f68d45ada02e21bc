// The memory that ranks allocate for each other, each from its own stripe of the segment. Also the
// agreement on reading each other's arrays in place, see docs/decisions/003-single-copy.md.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>

#include "foundation/base/deadline.h"
#include "foundation/base/interrupt.h"
#include "foundation/base/poll.h"
#include "foundation/os/process/process_exit.h"
#include "foundation/os/process/process_memory.h"
#include "hocket/error.h"
#include "membership/control/host.h"
#include "membership/control/host_layout.h"

namespace hocket::control {

using base::SingleCopy;

namespace {

constexpr std::size_t kLarge = 1 << 20;  // from here on it is worth looking for released memory

// Allows a write while the ticket is valid and the target has not ended. The kernel marks the
// target's word before it gives its process number to another process.
os::WritePermit permit_of(const os::RobustWord& target,
                          const base::Atomic<std::uint64_t>& ticket,
                          std::uint64_t valid) noexcept {
  return {.ticket = reinterpret_cast<const volatile std::uint64_t*>(&ticket),
          .valid = valid,
          .owner = reinterpret_cast<const volatile std::uint32_t*>(&target.word)};
}

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
// The time for a dead process that this process cannot see. Its end may take long.
constexpr std::chrono::seconds kMayStillWrite{60};
// The longest wait for memory that dead ranks hold. Their processes end meanwhile.
constexpr std::chrono::seconds kMostPatience{5};

BlockHeader& block_at(std::byte* data) { return *reinterpret_cast<BlockHeader*>(data); }

std::uint64_t make_proof() {
  std::random_device source;
  return std::uint64_t{source()} << 32 | source() | 1;
}

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
  // Pairs with collect: the holder's accesses to the block come before its reuse.
  block_at(at(offset - sizeof(BlockHeader))).held[word].fetch_and(~bit, std::memory_order_acq_rel);
}

void HostControl::withdraw(std::uint64_t offset) noexcept {
  for (int rank = 0; rank < ranks_; ++rank) release(offset, rank);
  ring_network();
}

bool HostControl::is_held(std::uint64_t offset) const noexcept {
  return is_held(offset, [this](int rank) { return is_gone(rank); });
}

// True if the rank's process can do nothing any more.
bool HostControl::is_gone(int rank) const noexcept {
  if (state(rank) != RankState::kDied) return false;
  if (end(rank) == os::kReplaced) return since_death(rank) >= kStillWrites;
  const std::uint64_t began = start(rank);
  if (began == 0) return since_death(rank) >= kMayStillWrite;
  return since_death(rank) >= kStillWrites && os::process_start(pid(rank)) != began;
}

// True if blocks would become free once dead ranks' processes are gone.
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

// Reclaims the blocks that all holders have released.
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

// --- Other ranks' own memory ---------------------------------------------------------------------

void HostControl::offer_proof() {
  os::let_siblings_access();
  proof_.number = make_proof();
  RankLine& line = lines_[self_];
  line.proof.store(proof_.number, std::memory_order_relaxed);
  line.proof_at.store(reinterpret_cast<std::uintptr_t>(&proof_), std::memory_order_relaxed);
}

// A process number means another process where the spaces of numbers differ, and there may be one.
std::string HostControl::try_to_read() const {
  for (int i = 0; i < ranks_; ++i) {
    const RankLine& line = lines_[i];
    const int pid = line.pid.load(std::memory_order_relaxed);
    if (line.pid_space.load(std::memory_order_relaxed) !=
        lines_[self_].pid_space.load(std::memory_order_relaxed)) {
      return fmt::format("rank {} is in another space of process numbers", world_rank(i));
    }
    std::uint64_t found = 0;
    const auto* const at =
        reinterpret_cast<const void*>(line.proof_at.load(std::memory_order_relaxed));
    const int error = os::read_process_memory(pid, &found, at, sizeof found);
    if (error != 0) {
      return fmt::format("the kernel does not let it read the memory of rank {} (pid {}): {}",
                         world_rank(i),
                         pid,
                         std::strerror(error));
    }
    if (found != line.proof.load(std::memory_order_relaxed)) {
      return fmt::format("pid {} is not rank {} here", pid, world_rank(i));
    }
  }
  return {};
}

// Writes a word to every rank that could be read.
std::string HostControl::try_to_write() {
  for (int i = 0; i < ranks_; ++i) {
    RankLine& line = lines_[i];
    const std::uint64_t at =
        line.proof_at.load(std::memory_order_relaxed) + offsetof(Proof, landing);
    const std::uint64_t word = 1;
    const os::WritePermit permit =
        permit_of(robust_word(i, self_), line.proof, line.proof.load(std::memory_order_relaxed));
    const int error = os::write_process_memory(line.pid.load(std::memory_order_relaxed),
                                               reinterpret_cast<void*>(at),
                                               &word,
                                               sizeof word,
                                               permit);
    if (error != 0) {
      return fmt::format("the kernel does not let it write to the memory of rank {}: {}",
                         world_rank(i),
                         std::strerror(error));
    }
  }
  return {};
}

std::string HostControl::agree_on_single_copy(SingleCopy wanted, base::Deadline deadline) {
  std::string reason = wanted == SingleCopy::kNever ? "" : try_to_read();
  const SingleCopy able = reason.empty() ? wanted : SingleCopy::kNever;
  if (able != SingleCopy::kNever) reason = try_to_write();
  const bool can_write = able != SingleCopy::kNever && reason.empty();
  const std::uint32_t own = 1 + static_cast<std::uint32_t>(able);
  lines_[self_].access.store(own | (can_write ? RankLine::kMayWrite : 0),
                             std::memory_order_release);
  ring_all();
  // All see the same word of a rank that has ended: it writes no other.
  const auto has_said = [this](const RankLine& line) {
    return line.state.load(std::memory_order_acquire) != RankState::kAlive ||
           line.access.load(std::memory_order_acquire) != 0;
  };
  const auto have_said = [&] { return std::all_of(lines_, lines_ + ranks_, has_said); };
  while (!have_said() && !deadline.has_passed()) {
    const auto ticket = before_sleep();
    if (!have_said()) sleep(ticket, deadline);
    after_sleep();
    look_for_deaths();
    base::throw_if_interrupted("the wait for all ranks of this host");
  }
  if (!have_said()) {
    const auto silent = std::find_if_not(lines_, lines_ + ranks_, has_said) - lines_;
    throw RendezvousError(fmt::format(
        "rank {} came to its host's shared memory and did not say in time whether it can read the "
        "memory of others; see its output",
        world_rank(static_cast<int>(silent))));
  }
  // As peers wrote it: out of range, or nothing from a rank that has ended, is a no.
  single_copy_ = SingleCopy::kAlways;
  may_write_ = true;
  for (int i = 0; i < ranks_; ++i) {
    const std::uint32_t said = lines_[i].access.load(std::memory_order_acquire);
    const std::uint32_t copies = said & ~RankLine::kMayWrite;
    const bool is_known = copies == 1 + static_cast<std::uint32_t>(SingleCopy::kWhereQuicker) ||
                          copies == 1 + static_cast<std::uint32_t>(SingleCopy::kAlways);
    single_copy_ =
        is_known ? std::min(single_copy_, static_cast<SingleCopy>(copies - 1)) : SingleCopy::kNever;
    may_write_ = may_write_ && is_known && (said & RankLine::kMayWrite) != 0;
    if (!is_known) break;
  }
  return reason;
}

int HostControl::read_array(int rank, void* to, const void* from, std::size_t bytes) noexcept {
  const int error = os::read_process_memory(pid(rank), to, from, bytes);
  if (rank == self_) return error;
  // The kernel marks the word before it gives the number to another process.
  const bool is_gone = state(rank) != RankState::kAlive || robust_word(rank, self_).owner_died();
  return is_gone ? ESRCH : error;
}

int HostControl::write_array(int rank,
                             void* to,
                             const void* from,
                             std::size_t bytes,
                             const base::Atomic<std::uint64_t>& ticket,
                             std::uint64_t valid) noexcept {
  if (state(rank) != RankState::kAlive) return ESRCH;
  const int error = os::write_process_memory(
      pid(rank), to, from, bytes, permit_of(robust_word(rank, self_), ticket, valid));
  return error == ECANCELED ? ESRCH : error;
}

bool HostControl::may_be_copying(int rank) const noexcept {
  if (state(rank) != RankState::kAlive) return !os::has_process_ended(pid(rank));
  return !os::are_threads_stopped(pid(rank), lines_[rank].start.load(std::memory_order_relaxed));
}

}  // namespace hocket::control
