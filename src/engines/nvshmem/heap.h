// NVSHMEM's symmetric heap in one process of a job.
//
// NVSHMEM has no deadlines, and its calls wait for all PEs. So each call runs in a separate thread,
// which may stay behind if the call does not end. Then the heap is lost and keeps the reason.
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

// The behaviour of a wait. A value.
struct Wait {
  std::function<void()> look;  // called periodically; throws if the PEs have failed
  std::function<void()> late;  // called at the deadline; throws
  base::Deadline deadline;
};

// A resource, one for each process, as NVSHMEM is. Its state is shared by all jobs of the process.
// If the program has not started NVSHMEM, this class starts it. NVSHMEM ends with the process. Any
// thread may use it. Collective functions are collective among all PEs, which call them in one
// order. Functions throw DeviceError, and what a Wait throws.
class Heap {
 public:
  // `multicast` allows NVSHMEM to use NVLink multicast.
  Heap(std::shared_ptr<const NvshmemLibrary> library, bool multicast);

  // Returns the facts of this process, whose GPU is `device`.
  Facts facts(const cuda::DeviceContext& device) const;

  // One rank makes the id, and all start with it. NVSHMEM's sockets use loopback, unless the user
  // has set another interface, because all ranks are on one host.
  UniqueId new_id();
  // Starts NVSHMEM as PE `pe` of `pes`. Collective.
  void start(std::shared_ptr<const cuda::DeviceContext> device,
             const UniqueId& id,
             int pe,
             int pes,
             const Wait& wait);
  // Sets the number of a world that the program has started. It is equal on all its PEs.
  void name_world(std::uint64_t world);

  // Returns why an allocation should not be tried. Empty: no known reason. NVSHMEM loses its whole
  // heap if an allocation fails.
  std::string why_no_room(const cuda::DeviceContext& device, std::size_t bytes) const;

  // Allocates zeroed memory at the same offset of every PE's heap. Collective. Null if there is not
  // enough. The piece counts as dropped when the last `lease` is gone.
  struct HeapBlock {
    std::byte* address = nullptr;
    std::shared_ptr<void> lease;
  };
  HeapBlock allocate(std::shared_ptr<const cuda::DeviceContext> device,
                     std::size_t bytes,
                     const Wait& wait);
  // Returns the same position in another PE's heap, as mapped here. Null if it is not mapped.
  std::byte* peer(const std::byte* address, int pe) const;

  // Returns one byte for each existing piece, in the order of allocation, which is equal on all
  // PEs. 1: it was dropped here.
  std::vector<std::byte> dropped() const;
  // Frees the pieces whose byte is 1. Collective; the bytes are equal on all PEs.
  void give_back(std::shared_ptr<const cuda::DeviceContext> device,
                 const std::vector<std::byte>& which,
                 const Wait& wait);

  // One rank makes the id, and all ranks make the team with it.
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
  // Runs calls of NVSHMEM one after the other, with the device's context current. If a call does
  // not end, the heap is lost.
  void call(std::shared_ptr<const cuda::DeviceContext> device,
            const std::string& what,
            std::function<void()> work,
            const Wait& wait);
  // Does the same for work that waits for no other PE. It ends by itself, so nothing is lost.
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
  std::shared_ptr<std::mutex> turn_ = std::make_shared<std::mutex>();  // order of calls
  mutable std::mutex mutex_;                                           // guards the members below
  std::uint64_t world_ = 0;
  int ordinal_ = -1;  // the GPU of its start; -1: unknown
  std::string lost_;
  std::vector<Allocation> allocations_;
  SpareRanges spare_;
};

}  // namespace hocket::nvshmem
