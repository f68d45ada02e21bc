// Making windows, and their attributes and names.
#include "interfaces/mpi/windows/window.h"

#include <unistd.h>

#include <chrono>

#include "interfaces/mpi/collectives/agreement.h"
#include "interfaces/mpi/communicators.h"
#include "interfaces/mpi/entry.h"
#include "interfaces/mpi/types/result.h"
#include "interfaces/mpi/windows/process_memory.h"
#include "interfaces/mpi/windows/service.h"
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
  return window.region.data() +
         window.member(target).place * words_bytes(window.ranks(), window.is_dynamic());
}

}  // namespace

Window::Window() = default;
Window::~Window() = default;

TargetLocks Window::locks(int target) const noexcept { return {words_of(*this, target), ranks()}; }
AttachedMemory Window::attached(int target) const noexcept {
  return AttachedMemory(words_of(*this, target) + TargetLocks::bytes(ranks()));
}

// Probing for a message from any rank throws if a rank has died. No message has this tag.
void check_members(Comm& comm) {
  constexpr int kNoMessages = std::numeric_limits<int>::max();
  if (comm.size() == 1) return;
  const std::unique_lock lock(comm.starting, std::try_to_lock);
  if (!lock) return;
  static_cast<void>(comm.net->probe_now(kAnySource, {.tag = kNoMessages}));
}
Check Window::check() {
  return [this] { check_members(*comm); };
}
void Window::look_at_members() {
  if (ranks() == 1) return;
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
  if (now - last_check.load(std::memory_order_relaxed) < kCheckNs) return;
  check_members(*comm);
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

// The memory that a rank passes to a window, or lets the window allocate.
struct Wanted {
  int flavor;
  void* base = nullptr;
  std::int64_t size = 0;
  std::int64_t disp_unit = 1;
};

// The facts about its memory that each rank sends to the others when a window is made.
struct Told {
  std::int32_t refused = MPI_SUCCESS;
  std::int32_t flavor = 0;
  std::int32_t has_gaps = 0;  // 1: its part need not follow the part of the rank before it
  std::int64_t pid = 0, size = 0, disp_unit = 1;
  std::uint64_t base = 0;
  std::uint64_t proof = 0, proof_at = 0;
};

bool allocates(int flavor) {
  return flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED;
}

const char* maker_of(int flavor) {
  switch (flavor) {
    case MPI_WIN_FLAVOR_CREATE:
      return "MPI_Win_create";
    case MPI_WIN_FLAVOR_ALLOCATE:
      return "MPI_Win_allocate";
    case MPI_WIN_FLAVOR_SHARED:
      return "MPI_Win_allocate_shared";
    default:
      return "MPI_Win_create_dynamic";
  }
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
  own.flavor = wanted.flavor;
  const std::string* const gaps = window.info->find("alloc_shared_noncontig");
  own.has_gaps = wanted.flavor != MPI_WIN_FLAVOR_SHARED || (gaps != nullptr && *gaps == "true");
  std::vector<Told> all(static_cast<std::size_t>(window.ranks()));
  window.comm->net->all_gather(ConstArrayView(&own, sizeof own, DType::kUInt8),
                               ArrayView(all.data(), all.size() * sizeof own, DType::kUInt8));
  if (code != MPI_SUCCESS) throw Failure{code};
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].flavor != all[0].flavor) {
      fail(MPI_ERR_NOT_SAME,
           "rank " + std::to_string(rank) + " called " + maker_of(all[rank].flavor) +
               ", and rank 0 " + maker_of(all[0].flavor));
    }
    if (all[rank].refused == MPI_SUCCESS) continue;
    fail(all[rank].refused, "rank " + std::to_string(rank) + " refused the call's arguments");
  }
  return all;
}

// Maps the region of this host, in which the parts follow the words. In a shared window a part
// begins where the one before it ends, unless all ranks allow gaps.
void map_region(Window& window, const std::vector<Told>& told) {
  bool has_gaps = true;
  for (const Told& one : told) has_gaps = has_gaps && one.has_gaps != 0;
  std::optional<std::int64_t> end =
      rounded(window.here->size() * words_bytes(window.ranks(), window.is_dynamic()));
  std::vector<std::int64_t> begins(told.size());
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    begins[rank] = end.value_or(0);
    if (!allocates(window.flavor) || window.members[rank].place < 0 || !end) continue;
    end = checked_add(*end, told[rank].size);
    if (end) end = checked_add(*end, has_gaps ? rounded(*end) - *end : 0);
    if (end && *end > std::numeric_limits<std::int64_t>::max() - kPage) end.reset();
  }
  agree(*window.comm, [&] {
    if (!end) fail(MPI_ERR_SIZE, "the ranks want more memory than any host has");
    window.region = Region(*window.here, *end);
  });
  if (!allocates(window.flavor)) return;
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    WindowMember& member = window.members[rank];
    if (member.place >= 0) member.mapped = window.region.data() + begins[rank];
  }
}

// Returns whether the kernel lets this process use the memory of another one. It reads a random
// number there, because a pid may name a different process in another pid namespace.
bool can_reach(const Told& other) {
  std::uint64_t found = 0;
  const int pid = static_cast<int>(other.pid);
  const Runs proof{{other.proof_at, sizeof found}};
  auto* const bytes = reinterpret_cast<std::byte*>(&found);
  return read_process(pid, proof, bytes) == 0 && found == other.proof &&
         write_process(pid, proof, bytes) == 0;
}

// Finds how this process reaches each member's memory. Returns whether it needs the service of a
// member.
bool find_reach(Window& window, const std::vector<Told>& told) {
  bool needs_service = false;
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    WindowMember& member = window.members[rank];
    if (member.mapped != nullptr) {
      member.reach = Reach::kMapped;
    } else if (member.place >= 0 && can_reach(told[rank])) {
      member.reach = Reach::kByKernel;
    }
    needs_service = needs_service || member.reach == Reach::kByService;
  }
  return needs_service;
}

bool any_of(Comm& comm, bool holds) {
  std::int32_t of_any = holds;
  comm.net->all_reduce(ArrayView(&of_any, 1, DType::kInt32), {.op = ReduceOp::kMax});
  return of_any != 0;
}

void start_service(Window& window) {
  window.requests = duplicate(*window.comm);
  const WindowMember& self = window.member(window.comm->rank);
  std::uint64_t base = reinterpret_cast<std::uintptr_t>(self.mapped);
  std::vector<std::uint64_t> bases(window.members.size());
  window.comm->net->all_gather(ConstArrayView(&base, 1, DType::kUInt64),
                               ArrayView(bases.data(), bases.size(), DType::kUInt64));
  for (std::size_t rank = 0; rank < bases.size(); ++rank) window.members[rank].base = bases[rank];
  // If a rank cannot start its service, no rank has a window. Otherwise accesses to that rank would
  // wait until their deadlines.
  agree(*window.comm, [&] { window.service = std::make_unique<AccessService>(window); });
}

std::shared_ptr<Window> make(const Wanted& wanted, MPI_Info info, MPI_Comm comm) {
  Comm& of = comm_of(comm);
  require(!of.is_inter(), MPI_ERR_COMM, "comm is an intercommunicator");
  auto made = std::make_shared<Window>();
  Window& window = *made;
  window.comm = duplicate(of);
  const auto hosts = window.comm->net->hosts();
  const int host = hosts[static_cast<std::size_t>(window.comm->rank)];
  const bool spans = !is_on_one_host(*window.comm);
  window.flavor = wanted.flavor;
  window.errhandler = process().errhandlers.share(MPI_ERRORS_ARE_FATAL);
  window.proof =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
      reinterpret_cast<std::uintptr_t>(&window) << 16;
  const std::vector<Told> told = tell_all(window, wanted, info);
  require(!spans || wanted.flavor != MPI_WIN_FLAVOR_SHARED,
          MPI_ERR_RMA_SHARED,
          "a shared window needs all of its ranks on one host; MPI_Comm_split_type makes such "
          "communicators");
  window.here = spans ? split(*window.comm, host, window.comm->rank) : window.comm;
  int next_place = 0;
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    const Told& one = told[rank];
    window.members.push_back({.place = hosts[rank] == host ? next_place++ : -1,
                              .pid = static_cast<int>(one.pid),
                              .size = one.size,
                              .disp_unit = static_cast<int>(one.disp_unit),
                              .base = static_cast<std::uintptr_t>(one.base)});
  }
  window.epochs.held.resize(told.size(), Held::kNothing);
  map_region(window, told);
  WindowMember& self = window.members[static_cast<std::size_t>(window.comm->rank)];
  if (!allocates(wanted.flavor)) self.mapped = reinterpret_cast<std::byte*>(self.base);
  if (any_of(*window.comm, find_reach(window, told))) start_service(window);
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
  window->service.reset();
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
  if (rank == MPI_PROC_NULL) {  // stands for the first rank that has memory
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

// --- Other properties of a window ----------------------------------------------------------------

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
