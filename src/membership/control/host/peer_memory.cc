#include "membership/control/host/peer_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>

#include "foundation/base/interrupt.h"
#include "foundation/os/process/process_exit.h"
#include "foundation/os/process/process_memory.h"
#include "hocket/error.h"

namespace hocket::control {

using base::SingleCopy;

namespace {

// Returns a permit that allows a write while `ticket` equals `valid` and the target has not ended.
// The kernel marks the target's robust word before it gives the pid to another process.
os::WritePermit permit_of(const os::RobustWord& target,
                          const base::Atomic<std::uint64_t>& ticket,
                          std::uint64_t valid) noexcept {
  return {.ticket = reinterpret_cast<const volatile std::uint64_t*>(&ticket),
          .valid = valid,
          .owner = reinterpret_cast<const volatile std::uint32_t*>(&target.word)};
}

std::uint64_t make_proof() {
  std::random_device source;
  return std::uint64_t{source()} << 32 | source() | 1;
}

}  // namespace

void PeerMemory::offer_proof() {
  os::let_siblings_access();
  proof_.number = make_proof();
  RankLine& line = lines_[self_];
  line.proof.store(proof_.number, std::memory_order_relaxed);
  line.proof_at.store(reinterpret_cast<std::uintptr_t>(&proof_), std::memory_order_relaxed);
}

// Returns why this rank cannot read the memory of some rank. Empty if it can read that of all
// ranks. A pid that is not valid in this pid namespace may belong to another process. So the rank
// reads a random number, which proves that it has read the right process.
std::string PeerMemory::try_to_read() const {
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

// Tries to write a word to every rank's memory. Returns why it cannot; empty if it can.
std::string PeerMemory::try_to_write() {
  for (int i = 0; i < ranks_; ++i) {
    RankLine& line = lines_[i];
    const std::uint64_t at =
        line.proof_at.load(std::memory_order_relaxed) + offsetof(Proof, written);
    const std::uint64_t word = 1;
    const os::WritePermit permit = permit_of(
        liveness_.robust_word(i, self_), line.proof, line.proof.load(std::memory_order_relaxed));
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

std::string PeerMemory::agree_on_single_copy(SingleCopy wanted, base::Deadline deadline) {
  std::string reason = wanted == SingleCopy::kNever ? "" : try_to_read();
  const SingleCopy able = reason.empty() ? wanted : SingleCopy::kNever;
  if (able != SingleCopy::kNever) reason = try_to_write();
  const bool can_write = able != SingleCopy::kNever && reason.empty();
  const std::uint32_t own = 1 + static_cast<std::uint32_t>(able);
  lines_[self_].access.store(own | (can_write ? RankLine::kMayWrite : 0),
                             std::memory_order_release);
  doorbells_.ring_all();
  // A rank that has ended no longer changes its `access`, so all ranks see the same value.
  const auto has_said = [this](const RankLine& line) {
    return line.state.load(std::memory_order_acquire) != RankState::kAlive ||
           line.access.load(std::memory_order_acquire) != 0;
  };
  const auto have_said = [&] { return std::all_of(lines_, lines_ + ranks_, has_said); };
  while (!have_said() && !deadline.has_passed()) {
    const auto ticket = doorbells_.before_sleep();
    if (!have_said()) doorbells_.sleep(ticket, deadline);
    doorbells_.after_sleep();
    liveness_.look_for_deaths();
    base::throw_if_interrupted("the wait for all ranks of this host");
  }
  // Looks only once, because a rank may announce it at any time.
  const auto silent = std::find_if_not(lines_, lines_ + ranks_, has_said) - lines_;
  if (silent != ranks_) {
    throw RendezvousError(fmt::format(
        "rank {} came to its host's shared memory and did not say in time whether it can read the "
        "memory of others; see its output",
        world_rank(static_cast<int>(silent))));
  }
  // A peer may have written any value, or may have ended before it wrote one. An unknown value
  // counts as kNever.
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

int PeerMemory::read_array(int rank, void* to, const void* from, std::size_t bytes) noexcept {
  const int error = os::read_process_memory(liveness_.pid(rank), to, from, bytes);
  if (rank == self_) return error;
  // If the rank has ended, the copy may come from another process with the same pid. This is
  // noticed here, because the kernel marks the robust word before it gives the pid to another
  // process.
  const bool is_gone =
      liveness_.state(rank) != RankState::kAlive || liveness_.robust_word(rank, self_).owner_died();
  return is_gone ? ESRCH : error;
}

int PeerMemory::write_array(int rank,
                            void* to,
                            const void* from,
                            std::size_t bytes,
                            const base::Atomic<std::uint64_t>& ticket,
                            std::uint64_t valid) noexcept {
  if (liveness_.state(rank) != RankState::kAlive) return ESRCH;
  const int error =
      os::write_process_memory(liveness_.pid(rank),
                               to,
                               from,
                               bytes,
                               permit_of(liveness_.robust_word(rank, self_), ticket, valid));
  return error == ECANCELED ? ESRCH : error;
}

bool PeerMemory::may_be_copying(int rank) const noexcept {
  if (liveness_.state(rank) != RankState::kAlive)
    return !os::has_process_ended(liveness_.pid(rank));
  return !os::are_threads_stopped(liveness_.pid(rank),
                                  lines_[rank].start.load(std::memory_order_relaxed));
}

}  // namespace hocket::control
