// Reads and writes the private memory of other ranks of a host, through the kernel; see
// docs/decisions/003-single-copy.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "foundation/base/atomic.h"
#include "foundation/base/config.h"
#include "foundation/base/deadline.h"
#include "membership/control/host/doorbells.h"
#include "membership/control/host/liveness.h"
#include "membership/control/host/view.h"

namespace hocket::control {

// Decides whether ranks of a host copy arrays directly from and to each other's memory, and makes
// these copies. A resource that cannot be moved, because peers read and write words of it. Any
// thread, unless noted otherwise.
class PeerMemory : public HostView {
 public:
  PeerMemory(const HostView& view, Doorbells& doorbells, Liveness& liveness) noexcept
      : HostView(view), doorbells_(doorbells), liveness_(liveness) {}
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // Lets other ranks access this rank's memory, and shows them where to try. Called before this
  // rank arrives.
  void offer_proof();
  // Decides whether the ranks of this host read each other's arrays directly. Each rank tries to
  // read a word of every other rank's memory, and announces what it wants and what it can. The
  // lowest of all announcements decides. All ranks of the host call it after
  // HostControl::wait_for_all. Returns why this rank cannot do what the setting asks for; empty if
  // it can.
  std::string agree_on_single_copy(base::SingleCopy wanted, base::Deadline deadline);
  // Returns the decision. kNever before it is made.
  base::SingleCopy single_copy() const noexcept { return single_copy_; }
  // Returns whether the ranks of this host can also write to each other's memory.
  bool may_write() const noexcept { return may_write_; }
  // Copies `bytes` bytes from address `from` of the process of `rank` to `to`. Returns 0 or an
  // error number, as os::read_process_memory does. Also returns ESRCH if the rank has ended by now,
  // because another process may have its pid.
  int read_array(int rank, void* to, const void* from, std::size_t bytes) noexcept;
  // Copies `bytes` bytes from `from` to address `to` of the process of `rank`, if `ticket` equals
  // `valid` when the kernel begins; see os::write_process_memory. Returns 0 if it has copied.
  // Returns ESRCH if `ticket` does not equal `valid`, or if the rank has ended; else the kernel's
  // error number.
  int write_array(int rank,
                  void* to,
                  const void* from,
                  std::size_t bytes,
                  const base::Atomic<std::uint64_t>& ticket,
                  std::uint64_t valid) noexcept;
  // Returns whether a rank of this host, which has announced that it is copying, may still be doing
  // so. A rank that has ended no longer copies once its last thread has ended. A rank whose threads
  // are stopped begins no new copy without checking its permit again.
  bool may_be_copying(int rank) const noexcept;

 private:
  std::string try_to_read() const;
  std::string try_to_write();

  Doorbells& doorbells_;
  Liveness& liveness_;
  base::SingleCopy single_copy_ = base::SingleCopy::kNever;
  bool may_write_ = false;
  // RankLine::proof_at has the address of this structure. Other ranks read `number` and write to
  // `written`.
  struct Proof {
    std::uint64_t number = 0;
    std::uint64_t written = 0;
  };
  Proof proof_;
};

}  // namespace hocket::control
