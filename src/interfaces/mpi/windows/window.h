// Windows: memory of ranks that other ranks of a communicator read and write directly.
//
// The ranks of one host share one region:
//
//     | words of rank 0 | words of rank 1 | ... | part of rank 0 | part of rank 1 | ...
//
// The words are locks, and the list of attached memory if the window is dynamic. The parts are
// memory that the window allocates. Memory that the program passes stays in place. Other ranks of
// the host copy from and to it by process_vm_readv and process_vm_writev. Ranks of other hosts send
// requests to the target's service (access.h). So does a rank to which the system refuses these
// calls.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "interfaces/mpi/handles.h"
#include "interfaces/mpi/objects.h"
#include "interfaces/mpi/windows/attached.h"
#include "interfaces/mpi/windows/locks.h"
#include "interfaces/mpi/windows/region.h"

namespace hocket::mpi {

// How this process reaches a member's memory.
enum class Reach : std::uint8_t { kMapped, kByKernel, kByService };

// A rank of a window, as others see it. A value.
struct WindowMember {
  int place = -1;  // among the ranks of this host; -1: it is on another host
  Reach reach = Reach::kByService;
  int pid = 0;
  std::int64_t size = 0;
  int disp_unit = 1;
  std::uintptr_t base = 0;      // address in the member's process
  std::byte* mapped = nullptr;  // the same memory in this process; null: it is not mapped
};

// Receives of the messages that begin or end an epoch. A resource.
struct PendingMarks {
  std::vector<std::byte> room;
  std::vector<Work> marks;  // one from each rank of the other side
};

// The epochs that this rank is in. `mutex` guards all members.
struct Epochs {
  std::mutex mutex;
  bool fence_is_open = false;
  bool all_locked = false;
  std::vector<Held> held;  // by target
  std::optional<std::vector<int>> started;
  std::optional<PendingMarks> posted;
  std::vector<Work> leaving;  // sends to other ranks that may not have ended
};

class AccessService;

// A resource. Threads may use it at the same time. Only one thread at a time makes collective
// calls.
struct Window {
  Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window();

  MPI_Win handle = MPI_WIN_NULL;
  std::shared_ptr<Comm> comm;      // the window's own duplicate
  std::shared_ptr<Comm> here;      // its ranks of this host
  std::shared_ptr<Comm> requests;  // for accesses by service; null: there are none
  std::atomic<std::uint32_t> next_request{0};
  int flavor = MPI_WIN_FLAVOR_CREATE;
  int model = MPI_WIN_UNIFIED;
  void* base = nullptr;
  MPI_Aint size = 0;
  int disp_unit = 1;

  Region region;
  std::vector<WindowMember> members;
  std::string name;
  std::shared_ptr<Info> info = std::make_shared<Info>();
  std::shared_ptr<Errhandler> errhandler;
  Attributes attributes;
  Epochs epochs;
  // A random number that others read to test whether they reach this process.
  std::uint64_t proof = 0;
  std::atomic<std::int64_t> last_check{0};  // nanoseconds
  std::unique_ptr<AccessService> service;   // null: all ranks reach this rank's memory directly

  int ranks() const noexcept { return comm->size(); }
  bool is_dynamic() const noexcept { return flavor == MPI_WIN_FLAVOR_DYNAMIC; }
  const WindowMember& member(int rank) const noexcept {
    return members[static_cast<std::size_t>(rank)];
  }
  // Return the words of a target, which is on this host.
  TargetLocks locks(int target) const noexcept;
  AttachedMemory attached(int target) const noexcept;

  // Throws if a rank of the window has died. It looks at most every 200 microseconds, so each call
  // can afford it.
  void look_at_members();
  Check check();

  // Returns the value of a predefined attribute. Absent: `keyval` is not predefined.
  std::optional<void*> predefined_attribute(int keyval) noexcept;
};

Handles<Window, MPI_Win>& windows();
std::shared_ptr<Window> window_of(MPI_Win handle);  // throws MPI_ERR_WIN
void delete_attributes(Window& of);
// Throws if a rank of the communicator has died. Does nothing while another thread begins a call.
void check_members(Comm& comm);

// Throws MPI_ERR_RANK unless `rank` is one of the window.
void check_target(const Window& window, int rank);
// Throws MPI_ERR_RMA_SYNC unless this rank is in an epoch in which it may access the target.
void require_access(Window& window, int target);
// Throws MPI_ERR_RMA_SYNC if this rank is in an epoch that has not been ended.
void require_no_epoch(Window& window);

}  // namespace hocket::mpi
