#include "membership/control/host/doorbells.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace hocket::control {

Doorbells::Doorbells(const HostView& view, os::FutexWord& network_bell)
    : HostView(view),
      network_bell_(network_bell),
      fenced_(os::register_for_heavy_fence() && os::heavy_fence()) {}

void Doorbells::announce_fences() noexcept {
  lines_[self_].fenced.store(fenced_ ? 1 : 0, std::memory_order_relaxed);
}

// Sleeps may be long only if the heavy fence covers every rank. A rank without membarrier might
// miss a wake-up.
void Doorbells::learn_fences() noexcept {
  all_fenced_.store(std::all_of(lines_,
                                lines_ + ranks_,
                                [](const RankLine& line) {
                                  return line.fenced.load(std::memory_order_relaxed) != 0;
                                }),
                    std::memory_order_relaxed);
}

void Doorbells::ring_parked(int peer) noexcept {
  lines_[peer].doorbell.fetch_add(1, std::memory_order_release);
  os::futex_wake_all(lines_[peer].doorbell);
}

void Doorbells::ring_all() noexcept {
  base::thread_fence(std::memory_order_seq_cst);
  for (int i = 0; i < ranks_; ++i) {
    if (lines_[i].parked.load(std::memory_order_relaxed) != 0) ring_parked(i);
  }
}

std::uint32_t Doorbells::before_sleep() noexcept {
  RankLine& line = lines_[self_];
  const auto ticket = line.doorbell.load(std::memory_order_acquire);
  line.parked.fetch_add(1, std::memory_order_seq_cst);
  // From here on, a thread that stores the awaited data sees `parked`. If it does not, this thread
  // sees the stored data.
  if (fenced_) os::heavy_fence();
  return ticket;
}

void Doorbells::sleep(std::uint32_t ticket,
                      base::Deadline deadline,
                      std::span<const os::FutexWait> more) noexcept {
  // Without heavy fences a ring may be missed, so each sleep is short.
  const bool fenced = all_fenced_.load(std::memory_order_relaxed);
  const auto longest = !fenced   ? std::chrono::milliseconds(1)
                       : arming_ ? std::chrono::milliseconds(10)
                                 : std::chrono::milliseconds(100);
  deadline = std::min(deadline, base::Deadline::in(longest));
  if (arming_ && !arming_()) return;
  os::FutexWord& doorbell = lines_[self_].doorbell;
  if (more.empty()) {
    os::futex_wait(doorbell, ticket, deadline);
    return;
  }
  std::array<os::FutexWait, os::kMaxFutexWaits + 1> waits;
  waits[0] = {&doorbell, ticket};
  const std::size_t count = std::min(more.size(), os::kMaxFutexWaits);
  std::copy_n(more.begin(), count, waits.begin() + 1);
  os::futex_wait_any(std::span(waits).first(count + 1), deadline);
}

void Doorbells::after_sleep() noexcept {
  lines_[self_].parked.fetch_sub(1, std::memory_order_relaxed);
}

void Doorbells::ring_network() noexcept {
  if (places_ == ranks_) return;
  network_bell_.fetch_add(1, std::memory_order_acq_rel);
  os::futex_wake_all(network_bell_);
}

}  // namespace hocket::control
