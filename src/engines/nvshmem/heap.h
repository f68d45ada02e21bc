// NVSHMEM's symmetric heap in one process of a job.
//
// NVSHMEM has no deadlines, and its calls wait for all PEs. So each call runs in a separate thread.
// If the call does not end in time, the thread is left behind. Then the heap is lost: it cannot be
// used any more, and it keeps the reason.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engines/nvshmem/agreement.h"
#include "engines/nvshmem/library.h"
#include "engines/nvshmem/spare_ranges.h"
#include "foundation/base/deadline.h"
#include "foundation/cuda/context.h"

namespace hocket::nvshmem {

// Describes how to wait for a call of NVSHMEM. A value.
struct Wait {
  std::function<void()> look;  // called periodically; throws if the PEs have failed
  std::function<void()> late;  // called at the deadline; throws
  base::Deadline deadline;
};

// The heap. There is one for each process, because a process has only one NVSHMEM. All jobs of the
// process share it. If the program has not started NVSHMEM, this class starts it. NVSHMEM ends with
// the process. Any thread may use the heap. All PEs must call collective functions, in the same
// order. Functions throw DeviceError, and the exceptions of a Wait. A resource.
class Heap {
 public:
  // `multicast` allows NVSHMEM to use NVLink multicast.
  Heap(std::shared_ptr<const NvshmemLibrary> library, bool multicast);

  // Returns the facts of this process for an agreement. `device` is the GPU of this rank.
  Facts facts(const cuda::DeviceContext& device) const;

  // Makes an id for `start`. One rank calls this, and all ranks start with its id. NVSHMEM's
  // sockets use loopback, because all ranks are on one host. The user may set a different
  // interface.
  UniqueId new_id();
  // Starts NVSHMEM as PE `pe` of `pes`. Collective.
  void start(std::shared_ptr<const cuda::DeviceContext> device,
             const UniqueId& id,
             int pe,
             int pes,
             const Wait& wait);
  // Sets hocket's number for a world that the program has started. All PEs must set the same
  // number.
  void name_world(std::uint64_t world);

  // Returns why an allocation should not be tried, or "". The check is needed because NVSHMEM loses
  // its whole heap if an allocation fails.
  std::string why_no_room(const cuda::DeviceContext& device, std::size_t bytes) const;

  // Allocates a piece of zeroed memory at the same offset of every PE's heap. Collective. Returns a
  // null address if there is not enough memory. The piece counts as dropped on this rank when the
  // last copy of `lease` is destroyed.
  struct HeapBlock {
    std::byte* address = nullptr;
    std::shared_ptr<void> lease;
  };
  HeapBlock allocate(std::shared_ptr<const cuda::DeviceContext> device,
                     std::size_t bytes,
                     const Wait& wait);
  // Returns the same position in another PE's heap, as this process maps it, or null if it does not
  // map this heap.
  std::byte* peer(const std::byte* address, int pe) const;

  // Returns one byte for each existing piece: 1 if the piece was dropped on this rank, otherwise 0.
  // The order is that of the allocations, which is equal on all PEs.
  std::vector<std::byte> dropped() const;
  // Frees the pieces whose byte in `which` is 1. Collective; all PEs must pass the same bytes.
  void give_back(std::shared_ptr<const cuda::DeviceContext> device,
                 const std::vector<std::byte>& which,
                 const Wait& wait);

  // Makes an id for `make_team`. One rank calls this, and all ranks make the team with its id.
  TeamId new_team_id();
  // Makes a team, in which this PE is number `pe` of `pes`. Collective among the team's PEs.
  Team make_team(std::shared_ptr<const cuda::DeviceContext> device,
                 TeamId id,
                 int pe,
                 int pes,
                 const Wait& wait);

  std::string version_text() const { return library_->version_text(); }

 private:
  void set_environment() const;
  // Runs `work`, a call of NVSHMEM, in a separate thread, with the device's context current. Calls
  // run one after the other. If the wait throws before the call has ended, the heap is lost. `what`
  // names the call in the reason.
  void call(std::shared_ptr<const cuda::DeviceContext> device,
            const std::string& what,
            std::function<void()> work,
            const Wait& wait);
  // Runs work that does not wait for other PEs, like `call`. This work always ends, so the heap is
  // never lost.
  void do_alone(std::shared_ptr<const cuda::DeviceContext> device,
                std::function<void()> work,
                const Wait& wait);

  struct Allocation {
    std::byte* address;
    std::size_t bytes;
    std::shared_ptr<std::atomic<bool>> dropped;
  };

  std::shared_ptr<const NvshmemLibrary> library_;
  bool multicast_;
  std::shared_ptr<std::mutex> turn_ = std::make_shared<std::mutex>();  // held during a call
  mutable std::mutex mutex_;                                           // guards the members below
  std::uint64_t world_ = 0;
  int ordinal_ = -1;  // the GPU on which this class started NVSHMEM; -1: unknown
  std::string lost_;  // why the heap is lost; empty: it is not
  std::vector<Allocation> allocations_;
  SpareRanges spare_;
};

}  // namespace hocket::nvshmem
