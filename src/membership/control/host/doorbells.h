// The doorbells by which ranks of a host wake each other.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "foundation/base/atomic.h"
#include "foundation/base/deadline.h"
#include "foundation/os/futex.h"
#include "membership/control/host/view.h"

namespace hocket::control {

// The doorbells of the ranks, and that of the network, as one rank uses them. A resource: it
// registers this process for heavy fences. Any thread.
class Doorbells : public HostView {
 public:
  Doorbells(const HostView& view, os::FutexWord& network_bell);
  Doorbells(const Doorbells&) = delete;
  Doorbells& operator=(const Doorbells&) = delete;

  // Wakes rank `peer`. Call it after a store that `peer` may be waiting for. If no thread of `peer`
  // sleeps, it costs one load. The sleeper's heavy fence orders the caller's store before this
  // load.
  void ring(int peer) noexcept {
    os::light_fence();
    if (lines_[peer].parked.load(std::memory_order_relaxed) != 0) ring_parked(peer);
  }
  void ring_all() noexcept;
  // Wakes the sleeping threads of this rank.
  void wake_self() noexcept { ring_parked(self_); }
  // Announces that this thread is about to sleep, and returns a ticket for `sleep`. In between, the
  // thread must check its condition once more:
  //
  //   ticket = before_sleep();  if (!condition) sleep(ticket, ...);  after_sleep();
  std::uint32_t before_sleep() noexcept;
  // Sleeps until a wake-up, `deadline`, or a signal; at most 100 ms. A change of one of the words
  // `more` also ends the sleep.
  void sleep(std::uint32_t ticket,
             base::Deadline deadline,
             std::span<const os::FutexWait> more = {}) noexcept;
  void after_sleep() noexcept;
  // Sets a function that `sleep` calls first. If it returns false, something has already come, and
  // `sleep` does not sleep. Must be set before the rank arrives. The function must outlive this
  // object.
  void set_arming(std::function<bool()> arming) { arming_ = std::move(arming); }

  // Returns whether os::heavy_fence works in this process.
  bool fenced() const noexcept { return fenced_; }
  // Tells the other ranks whether it works here. Called before the rank arrives.
  void announce_fences() noexcept;
  // Finds out whether it works in all ranks. Called once all ranks have arrived. Until then sleeps
  // are short.
  void learn_fences() noexcept;

  // Wakes the rank that speaks for this host, because there is news for other hosts. Does nothing
  // if there are no other hosts.
  void ring_network() noexcept;
  // Returns the word that changes when there is news for other hosts.
  os::FutexWord& network_bell() const noexcept { return network_bell_; }

 private:
  void ring_parked(int peer) noexcept;

  os::FutexWord& network_bell_;
  bool fenced_;                           // heavy fences work in this process
  base::Atomic<bool> all_fenced_{false};  // they cover all ranks; known once all have arrived
  std::function<bool()> arming_;
};

}  // namespace hocket::control
