// Windows: memory of ranks that others of a communicator read and write by themselves.
//
// All ranks of a window are of one host. They share one region:
//
//     | words of rank 0 | words of rank 1 | ... | part of rank 0 | part of rank 1 | ...
//
// The words are locks, and the list of attached memory if the window is dynamic. The parts are the
// memory of windows that allocate it. Memory that the program brings stays where it is; the kernel
// copies from and to it for other ranks (process_vm_readv, process_vm_writev).
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

// A rank of a window, as others see it. A value.
struct WindowMember {
  int pid = 0;
  std::int64_t size = 0;
  int disp_unit = 1;
  std::uintptr_t base = 0;      // in its own process
  std::byte* mapped = nullptr;  // the same memory in this process; null: it is not mapped
};

// The lock that this rank holds on a target.
enum class Held : std::uint8_t {
  kNothing,
  kShared,
  kExclusive,
  kUnchecked,  // with MPI_MODE_NOCHECK, so it was not acquired
};

// Messages that an exposure epoch waits for. A resource.
struct Exposure {
  std::vector<std::byte> room;
  std::vector<Work> ends;  // of each rank's accesses
};

// The epochs that this rank is in. `mutex` guards all of it.
struct Epochs {
  std::mutex mutex;
  bool fence_is_open = false;
  bool all_locked = false;
  std::vector<Held> held;  // of each target
  std::optional<std::vector<int>> started;
  std::optional<Exposure> posted;
  std::vector<Work> leaving;  // messages to other ranks that may be on their way
};

// A resource. Threads may use it at the same time; collective calls are made by one at a time.
struct Window {
  MPI_Win handle = MPI_WIN_NULL;
  std::shared_ptr<Comm> comm;  // of its own
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
  std::uint64_t proof = 0;  // what others read to see whether they reach this process
  std::atomic<std::int64_t> last_check{0};  // nanoseconds

  int ranks() const noexcept { return comm->size(); }
  bool is_dynamic() const noexcept { return flavor == MPI_WIN_FLAVOR_DYNAMIC; }
  const WindowMember& member(int rank) const noexcept {
    return members[static_cast<std::size_t>(rank)];
  }
  TargetLocks locks(int target) const noexcept;
  AttachedMemory attached(int target) const noexcept;

  // Throws if a rank of the window has died. Cheap enough for each call, as it looks every 200
  // microseconds only.
  void look_at_members();
  void check_members();
  Check check() {
    return [this] { check_members(); };
  }

  // Absent: keyval is none of the predefined ones.
  std::optional<void*> predefined_attribute(int keyval) noexcept;
};

Handles<Window, MPI_Win>& windows();
std::shared_ptr<Window> window_of(MPI_Win handle);  // throws MPI_ERR_WIN
void delete_attributes(Window& of);

// A rank of the window; throws MPI_ERR_RANK.
void check_target(const Window& window, int rank);
// Throws MPI_ERR_RMA_SYNC unless this rank is in an epoch in which it may access the target.
void require_access(Window& window, int target);
// Throws MPI_ERR_RMA_SYNC if this rank is in an epoch that a call must end first.
void require_no_epoch(Window& window);

}  // namespace hocket::mpi
