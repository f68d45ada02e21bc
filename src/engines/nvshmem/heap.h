// NVSHMEM's symmetric heap, as one process of a job sees it.
//
// NVSHMEM knows no deadline, and its calls wait for all PEs. So each is made in a thread of its
// own, which stays behind where the call does not end; then the heap is lost, and says why.
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

// How an end is waited for. A value.
struct Wait {
  std::function<void()> look;  // called now and then; throws where the PEs have failed
  std::function<void()> late;  // called at the deadline; throws
  base::Deadline deadline;
};

// A resource, one a process, as NVSHMEM is: what it remembers holds for every job of the process,
// one after the other or at once. NVSHMEM is started here where the program has not, and ends with
// the process. Any thread. What is said to be collective is so among
// all PEs, which call in one order. Throws DeviceError, and what a Wait throws.
class Heap {
 public:
  // `multicast`: let NVSHMEM use NVLink multicast.
  Heap(std::shared_ptr<const NvshmemLibrary> library, bool multicast);

  // Of this process, whose GPU is `device`.
  Facts facts(const cuda::DeviceContext& device) const;

  // For one rank to make, and for all to start with. NVSHMEM's own sockets are bound to loopback
  // where the user has not said otherwise, as all are on one host.
  UniqueId new_id();
  // Collective: starts NVSHMEM as PE `pe` of `pes`.
  void start(std::shared_ptr<const cuda::DeviceContext> device,
             const UniqueId& id,
             int pe,
             int pes,
             const Wait& wait);
  // Names the world that the program has started, alike on all its PEs.
  void name_world(std::uint64_t world);

  // Why such an allocation is not to be tried, empty: nothing is known against it. NVSHMEM gives
  // its whole heap up where it can get no more memory for it.
  std::string why_no_room(const cuda::DeviceContext& device, std::size_t bytes) const;

  // Collective: zeroed memory at the same place of every PE's heap; null where there is no room. It
  // counts as dropped when the last `lease` has gone.
  struct Piece {
    std::byte* address = nullptr;
    std::shared_ptr<void> lease;
  };
  Piece allocate(std::shared_ptr<const cuda::DeviceContext> device,
                 std::size_t bytes,
                 const Wait& wait);
  // The same place of another PE's heap as mapped here; null where it is not.
  std::byte* peer(const std::byte* address, int pe) const;

  // Pieces that have not been given back, in the order in which they were made, which is the same
  // on all PEs: 1 where it has been dropped here.
  std::vector<std::byte> dropped() const;
  // Collective: gives those back that are 1, which are the same on all.
  void give_back(std::shared_ptr<const cuda::DeviceContext> device,
                 const std::vector<std::byte>& which,
                 const Wait& wait);

  // For one rank to make, and for all of a team to make it with.
  TeamId new_team_id();
  // Collective among the team's PEs: this one is number `pe` of `pes`.
  Team make_team(std::shared_ptr<const cuda::DeviceContext> device,
                 TeamId id,
                 int pe,
                 int pes,
                 const Wait& wait);

  std::string version_text() const { return library_->version_text(); }

 private:
  void set_environment() const;
  // Makes calls of NVSHMEM, one after the other, with the device's context current. Where one is
  // left behind the heap is lost.
  void call(std::shared_ptr<const cuda::DeviceContext> device,
            const std::string& what,
            std::function<void()> work,
            const Wait& wait);
  // The same for work that waits for no other PE: it ends by itself, so that nothing is lost.
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
  std::shared_ptr<std::mutex> turn_ = std::make_shared<std::mutex>();  // of calls
  mutable std::mutex mutex_;                                           // of what follows
  std::uint64_t world_ = 0;
  int ordinal_ = -1;  // of the GPU that it was started on; -1: not known
  std::string lost_;
  std::vector<Allocation> allocations_;
  SpareRanges spare_;
};

}  // namespace hocket::nvshmem
