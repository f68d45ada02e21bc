// Records which ranks of a job are alive, and how the others have ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "foundation/base/atomic.h"
#include "foundation/os/futex.h"
#include "membership/control/host/doorbells.h"
#include "membership/control/host/view.h"

namespace hocket::control {

// The states of all ranks, as one rank reads and records them. A view: the segment and the
// doorbells outlive it. Any thread. Times are in ns of this host's steady clock.
class Liveness : public HostView {
 public:
  // `robust` has a word for each pair of ranks of this host. `losses` counts the losses of all
  // ranks.
  Liveness(const HostView& view,
           os::RobustWord* robust,
           base::Atomic<std::uint32_t>& losses,
           Doorbells& doorbells) noexcept
      : HostView(view), robust_(robust), losses_(losses), doorbells_(doorbells) {}

  // Takes this rank's place and announces it. Throws RendezvousError if the place is taken.
  void arrive(int world_rank);
  // Announces that this rank leaves in good order. Peers no longer wait for it.
  void leave() noexcept;

  RankState state(int rank) const noexcept {
    return lines_[rank].state.load(std::memory_order_acquire);
  }
  int pid(int rank) const noexcept { return lines_[rank].pid.load(std::memory_order_relaxed); }
  // Returns os::process_start of the rank's process. 0 if this process cannot see it.
  std::uint64_t start(int rank) const noexcept;
  // Returns the number of the thread in which the rank joined. If ranks are threads, it is the
  // rank's own thread.
  int thread(int rank) const noexcept {
    return lines_[rank].thread.load(std::memory_order_relaxed);
  }
  // Returns a counter of deaths and departures. It changes whenever a rank's state does.
  std::uint32_t losses() const noexcept { return losses_.load(std::memory_order_acquire); }
  // Makes all waiting threads check again which ranks are alive.
  void count_loss() noexcept { losses_.fetch_add(1, std::memory_order_acq_rel); }

  // Returns the robust word that `owner` holds for `watcher`. The kernel marks it when the owner's
  // thread ends.
  os::RobustWord& robust_word(int owner, int watcher) noexcept {
    return robust_[static_cast<std::size_t>(owner) * static_cast<std::size_t>(ranks_) +
                   static_cast<std::size_t>(watcher)];
  }
  // Records that `rank` has died, which its robust word shows, and wakes all ranks. Any rank may
  // call it, also several times.
  void record_death(int rank) noexcept;
  // Checks the robust words of all ranks, and records the deaths that they show. The kernel wakes
  // the progress thread for a death too, but a thread that is running already sees it sooner here.
  void look_for_deaths() noexcept;
  // Records the death of `rank` if the kernel is writing its memory to a core file. The kernel
  // marks robust words only after that. Takes a few system calls.
  void look_for_core_dump(int rank) noexcept;
  // Returns when the rank's death or departure was recorded.
  std::int64_t ended_at(int place) const noexcept {
    return lines_[place].death_seen.load(std::memory_order_relaxed);
  }
  // Returns the time since the rank's death or departure was recorded.
  std::chrono::nanoseconds since_death(int rank) const noexcept;

  // Records how `rank` has ended: the status of waitpid.
  void record_end(int rank, int status) noexcept;
  bool has_end(int rank) const noexcept {
    return lines_[rank].end.load(std::memory_order_acquire) != 0;
  }
  // Returns how `rank` has ended. Absent: it is not known yet.
  std::optional<int> end(int rank) const noexcept;

 private:
  void become(int rank, RankState ended) noexcept;

  os::RobustWord* robust_;
  base::Atomic<std::uint32_t>& losses_;
  Doorbells& doorbells_;
};

}  // namespace hocket::control
