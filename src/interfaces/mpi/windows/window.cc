// Making windows, and what they hold beside memory.
#include "interfaces/mpi/windows/window.h"

#include <unistd.h>

#include <chrono>

#include "interfaces/mpi/communicators.h"
#include "interfaces/mpi/entry.h"
#include "interfaces/mpi/types/result.h"
#include "interfaces/mpi/windows/process_memory.h"
#include "mpi_calls.h"

namespace hocket::mpi {

Handles<Window, MPI_Win>& windows() {
  static auto& made = *new Handles<Window, MPI_Win>();  // NOLINT: it outlives the program's objects
  return made;
}
std::shared_ptr<Window> window_of(MPI_Win handle) {
  auto found = windows().share(handle);
  require(found != nullptr, MPI_ERR_WIN, "win is no window");
  return found;
}

namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kCheckNs = 200'000;

std::int64_t rounded(std::int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::int64_t words_bytes(int ranks, bool is_dynamic) {
  return static_cast<std::int64_t>(TargetLocks::bytes(ranks) +
                                   (is_dynamic ? AttachedMemory::bytes() : 0));
}

std::byte* words_of(const Window& window, int target) {
  return window.region.data() + target * words_bytes(window.ranks(), window.is_dynamic());
}

}  // namespace

TargetLocks Window::locks(int target) const noexcept { return {words_of(*this, target), ranks()}; }
AttachedMemory Window::attached(int target) const noexcept {
  return AttachedMemory(words_of(*this, target) + TargetLocks::bytes(ranks()));
}

// A look for a message from any rank fails if one has died. No rank sends any with this tag.
void Window::check_members() {
  constexpr int kNoMessages = 9;
  if (ranks() == 1) return;
  const std::unique_lock lock(comm->starting, std::try_to_lock);
  if (!lock) return;
  static_cast<void>(comm->net->probe_now(kAnySource, {.tag = kNoMessages}));
}
void Window::look_at_members() {
  if (ranks() == 1) return;
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
  if (now - last_check.load(std::memory_order_relaxed) < kCheckNs) return;
  check_members();
  last_check.store(now, std::memory_order_relaxed);
}

std::optional<void*> Window::predefined_attribute(int keyval) noexcept {
  if (keyval == MPI_WIN_BASE) return base;
  if (keyval == MPI_WIN_SIZE) return &size;
  if (keyval == MPI_WIN_DISP_UNIT) return &disp_unit;
  if (keyval == MPI_WIN_CREATE_FLAVOR) return &flavor;
  if (keyval == MPI_WIN_MODEL) return &model;
  return std::nullopt;
}

void check_target(const Window& window, int rank) {
  if (rank < 0 || rank >= window.ranks()) {
    fail(MPI_ERR_RANK,
         "the target is " + std::to_string(rank) + ", and the window has " +
             std::to_string(window.ranks()) + " ranks");
  }
}

namespace {

// The memory that a rank wants to bring or to have.
struct Wanted {
  int flavor;
  void* base = nullptr;
  std::int64_t size = 0;
  std::int64_t disp_unit = 1;
};

// A rank's part in making a window, which it tells the others.
struct Told {
  std::int32_t refused = MPI_SUCCESS;
  std::int32_t has_gaps = 0;  // its memory needs not follow that of the rank before it
  std::int64_t pid = 0, size = 0, disp_unit = 1;
  std::uint64_t base = 0;
  std::uint64_t proof = 0, proof_at = 0;
};

bool allocates(int flavor) {
  return flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED;
}

void check_wanted(const Wanted& wanted) {
  require(wanted.size >= 0, MPI_ERR_SIZE, "size is negative");
  require(wanted.disp_unit > 0 && wanted.disp_unit <= std::numeric_limits<int>::max(),
          MPI_ERR_DISP,
          "disp_unit is not positive, or too large");
  require(wanted.base != nullptr || wanted.size == 0 || wanted.flavor != MPI_WIN_FLAVOR_CREATE,
          MPI_ERR_BASE,
          "base is null");
}

std::vector<Told> tell_all(Window& window, const Wanted& wanted, MPI_Info info) {
  Told own{.pid = ::getpid(),
           .size = wanted.size,
           .disp_unit = wanted.disp_unit,
           .base = reinterpret_cast<std::uintptr_t>(wanted.base),
           .proof = window.proof,
           .proof_at = reinterpret_cast<std::uintptr_t>(&window.proof)};
  int code = MPI_SUCCESS;
  try {
    check_wanted(wanted);
    if (const Info* hints = hints_of(info)) *window.info = *hints;
  } catch (const Failure& failure) {
    code = failure.code;
  }
  own.refused = class_of(code);
  const std::string* const gaps = window.info->find("alloc_shared_noncontig");
  own.has_gaps = wanted.flavor != MPI_WIN_FLAVOR_SHARED || (gaps != nullptr && *gaps == "true");
  std::vector<Told> all(static_cast<std::size_t>(window.ranks()));
  window.comm->net->all_gather(ConstArrayView(&own, sizeof own, DType::kUInt8),
                               ArrayView(all.data(), all.size() * sizeof own, DType::kUInt8));
  if (code != MPI_SUCCESS) throw Failure{code};
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].refused == MPI_SUCCESS) continue;
    fail(all[rank].refused, "rank " + std::to_string(rank) + " refused the call's arguments");
  }
  return all;
}

// Maps the region, in which the parts follow the words. In a shared window a part begins where the
// one before it ends, unless all ranks allow gaps.
void map_region(Window& window, const std::vector<Told>& told) {
  bool has_gaps = true;
  for (const Told& one : told) has_gaps = has_gaps && one.has_gaps != 0;
  std::optional<std::int64_t> end =
      rounded(window.ranks() * words_bytes(window.ranks(), window.is_dynamic()));
  std::vector<std::int64_t> begins;
  for (const Told& one : told) {
    begins.push_back(end.value_or(0));
    if (!allocates(window.flavor) || !end) continue;
    end = checked_add(*end, one.size);
    if (end) end = checked_add(*end, has_gaps ? rounded(*end) - *end : 0);
    if (end && *end > std::numeric_limits<std::int64_t>::max() - kPage) end.reset();
  }
  if (!end) fail(MPI_ERR_SIZE, "the ranks want more memory than any host has");
  window.region = Region(*window.comm, *end);
  if (!allocates(window.flavor)) return;
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    window.members[rank].mapped = window.region.data() + begins[rank];
  }
}

// A process number means another process where the spaces of numbers differ, so the ranks read a
// number of each other.
void require_reach(Window& window, const std::vector<Told>& told) {
  agree(*window.comm, [&] {
    for (const Told& one : told) {
      std::uint64_t found = 0;
      const int error = read_process(static_cast<int>(one.pid),
                                     {{one.proof_at, sizeof found}},
                                     reinterpret_cast<std::byte*>(&found));
      require(error == 0 && found == one.proof,
              MPI_ERR_UNSUPPORTED_OPERATION,
              "the system does not let the ranks reach each other's memory; MPI_Win_allocate needs "
              "no such permission");
    }
  });
}

std::shared_ptr<Window> make(const Wanted& wanted, MPI_Info info, MPI_Comm comm) {
  Comm& of = comm_of(comm);
  require(!of.is_inter(), MPI_ERR_COMM, "comm is an intercommunicator");
  auto made = std::make_shared<Window>();
  Window& window = *made;
  window.comm = duplicate(of);
  require(is_on_one_host(*window.comm),
          MPI_ERR_UNSUPPORTED_OPERATION,
          "a window needs all of its ranks on one host; MPI_Comm_split_type makes such "
          "communicators");
  window.flavor = wanted.flavor;
  window.errhandler = process().errhandlers.share(MPI_ERRORS_ARE_FATAL);
  window.proof =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
      reinterpret_cast<std::uintptr_t>(&window) << 16;
  const std::vector<Told> told = tell_all(window, wanted, info);
  for (const Told& one : told) {
    window.members.push_back({.pid = static_cast<int>(one.pid),
                              .size = one.size,
                              .disp_unit = static_cast<int>(one.disp_unit),
                              .base = static_cast<std::uintptr_t>(one.base)});
  }
  window.epochs.held.resize(told.size(), Held::kNothing);
  map_region(window, told);
  if (!allocates(wanted.flavor) && told.size() > 1) require_reach(window, told);

  WindowMember& self = window.members[static_cast<std::size_t>(window.comm->rank)];
  if (!allocates(wanted.flavor)) self.mapped = reinterpret_cast<std::byte*>(self.base);
  window.base = self.mapped;
  window.size = wanted.size;
  window.disp_unit = self.disp_unit;
  return made;
}

void hand_out(std::shared_ptr<Window> made, MPI_Win* win) {
  Window& window = *made;
  window.handle = windows().add(std::move(made));
  *win = window.handle;
}
void hand_out(std::shared_ptr<Window> made, void* baseptr, MPI_Win* win) {
  *static_cast<void**>(baseptr) = made->base;
  hand_out(std::move(made), win);
}

}  // namespace
}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Win_create(
    void* base, MPI_Aint size, MPI_Count disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  hand_out(
      make({.flavor = MPI_WIN_FLAVOR_CREATE, .base = base, .size = size, .disp_unit = disp_unit},
           info,
           comm),
      win);
}
void Win_allocate(
    MPI_Aint size, MPI_Count disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win) {
  hand_out(
      make({.flavor = MPI_WIN_FLAVOR_ALLOCATE, .size = size, .disp_unit = disp_unit}, info, comm),
      baseptr,
      win);
}
void Win_allocate_shared(
    MPI_Aint size, MPI_Count disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win) {
  hand_out(
      make({.flavor = MPI_WIN_FLAVOR_SHARED, .size = size, .disp_unit = disp_unit}, info, comm),
      baseptr,
      win);
}
void Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  hand_out(make({.flavor = MPI_WIN_FLAVOR_DYNAMIC}, info, comm), win);
}

void Win_free(MPI_Win* win) {
  const auto window = window_of(*win);
  agree(*window->comm, [&] { require_no_epoch(*window); });
  delete_attributes(*window);
  windows().remove(*win);
  *win = MPI_WIN_NULL;
}

void Win_attach(MPI_Win win, void* base, MPI_Aint size) {
  const auto window = window_of(win);
  require(window->is_dynamic(), MPI_ERR_RMA_FLAVOR, "win is not a dynamic window");
  require(size >= 0, MPI_ERR_SIZE, "size is negative");
  require(base != nullptr || size == 0, MPI_ERR_BASE, "base is null");
  const std::lock_guard lock(window->epochs.mutex);
  switch (window->attached(window->comm->rank)
              .add(reinterpret_cast<std::uintptr_t>(base), static_cast<std::uint64_t>(size))) {
    case AttachedMemory::Added::kDone:
      return;
    case AttachedMemory::Added::kOverlaps:
      fail(MPI_ERR_RMA_ATTACH, "a part of this memory is attached already");
    case AttachedMemory::Added::kFull:
      fail(MPI_ERR_RMA_ATTACH,
           "a rank may attach " + std::to_string(AttachedMemory::kMost) +
               " pieces of memory to a window");
  }
}
void Win_detach(MPI_Win win, const void* base) {
  const auto window = window_of(win);
  require(window->is_dynamic(), MPI_ERR_RMA_FLAVOR, "win is not a dynamic window");
  const std::lock_guard lock(window->epochs.mutex);
  require(window->attached(window->comm->rank).remove(reinterpret_cast<std::uintptr_t>(base)),
          MPI_ERR_BASE,
          "no memory that is attached begins at base");
}
void Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, CountOut disp_unit, void* baseptr) {
  const auto window = window_of(win);
  require(!window->is_dynamic(), MPI_ERR_RMA_FLAVOR, "win is a dynamic window");
  if (rank == MPI_PROC_NULL) {  // the first rank that has memory
    rank = 0;
    while (rank + 1 < window->ranks() && window->member(rank).size == 0) ++rank;
  }
  check_target(*window, rank);
  const WindowMember& of = window->member(rank);
  const bool is_shared = of.mapped != nullptr;
  *size = is_shared ? of.size : 0;
  disp_unit = of.disp_unit;
  *static_cast<void**>(baseptr) = of.mapped;
}

// --- What a window has beside memory -------------------------------------------------------------

void Win_get_group(MPI_Win win, MPI_Group* group) {
  *group = process().groups.add(std::make_shared<Group>(*window_of(win)->comm->local));
}
void Win_get_info(MPI_Win win, MPI_Info* info_used) {
  *info_used = process().infos.add(std::make_shared<Info>(*window_of(win)->info));
}
void Win_set_info(MPI_Win win, MPI_Info info) {
  const auto window = window_of(win);
  const Info* hints = hints_of(info);
  if (hints == nullptr) return;
  for (const auto& [key, value] : hints->entries) window->info->set(key, value);
}
void Win_set_name(MPI_Win win, const char* name) {
  require(name != nullptr, MPI_ERR_ARG, "win_name is null");
  window_of(win)->name = std::string(name).substr(0, MPI_MAX_OBJECT_NAME - 1);
}
void Win_get_name(MPI_Win win, char* name, int* resultlen) {
  const std::string found = win == MPI_WIN_NULL ? "MPI_WIN_NULL" : window_of(win)->name;
  found.copy(name, found.size());
  name[found.size()] = '\0';
  *resultlen = static_cast<int>(found.size());
}

void Win_create_errhandler(MPI_Win_errhandler_function* function, MPI_Errhandler* errhandler) {
  *errhandler = process().errhandlers.add(std::make_shared<Errhandler>(
      Errhandler{.kind = Errhandler::Kind::kUser, .of_win = function}));
}
void Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler) {
  const auto window = window_of(win);
  auto handler = process().errhandlers.share(errhandler);
  require(handler != nullptr, MPI_ERR_ERRHANDLER, "errhandler is no error handler");
  require(handler->kind != Errhandler::Kind::kUser || handler->of_win != nullptr,
          MPI_ERR_ERRHANDLER,
          "errhandler is not one of windows");
  window->errhandler = std::move(handler);
}
void Win_get_errhandler(MPI_Win win, MPI_Errhandler* errhandler) {
  *errhandler = handle_of_errhandler(window_of(win)->errhandler);
}
void Win_call_errhandler(MPI_Win win, int errorcode) {
  window_of(win);
  tell_handler("MPI_Win_call_errhandler", Scope{.win = win}, errorcode);
}

}  // namespace hocket::mpi::call
