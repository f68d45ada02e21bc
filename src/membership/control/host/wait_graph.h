// The graph of long waits among the ranks of a host: each rank shows the rank that it waits for.
// With the graph, only one rank warns of each long wait. See monitoring/live/long_wait.h.
#pragma once

#include <cstdint>

#include "foundation/base/atomic.h"
#include "membership/control/host/view.h"

namespace hocket::control {

// The rank that each rank waits for, as one rank shows its own and reads the others'. A view of the
// segment, which outlives it. Any thread.
class WaitGraph : public HostView {
 public:
  explicit WaitGraph(const HostView& view) noexcept : HostView(view) {}

  // Shows the other ranks the place of the rank that this rank waits for; -1: none.
  void show_awaited(int place) noexcept {
    lines_[self_].awaits.store(place, std::memory_order_relaxed);
  }
  // Returns the place of the rank that the rank at `place` waits for; -1: none.
  int awaited_by(int place) const noexcept { return checked_place(lines_[place].awaits); }
  // Returns the place of the rank that warns of waits for the rank at `place`; -1: none. One rank
  // of this host at a time does so.
  int speaker_about(int place) const noexcept { return checked_place(lines_[place].spoken_for); }
  // Makes this rank warn of these waits in place of `before`. Returns false if another rank was
  // faster.
  bool speak_about(int place, int before) noexcept {
    std::int32_t expected = before;
    return lines_[place].spoken_for.compare_exchange_strong(
        expected, self_, std::memory_order_relaxed);
  }
  void speak_no_more_about(int place) noexcept {
    std::int32_t expected = self_;
    lines_[place].spoken_for.compare_exchange_strong(expected, -1, std::memory_order_relaxed);
  }

 private:
  int checked_place(const base::Atomic<std::int32_t>& word) const noexcept {
    const std::int32_t place = word.load(std::memory_order_relaxed);
    return place >= 0 && place < places_ ? place : -1;
  }
};

}  // namespace hocket::control
