// Epochs: the times in which a rank may access memory of other ranks, or lets other ranks access
// its own memory.
//
// A fence is a collective call. Post, start, complete and wait use messages. A rank that posts
// sends a message to each origin. Each origin sends a message back when its accesses have ended.
// Locks are words in the region of the window.
#include <algorithm>
#include <array>
#include <atomic>

#include "interfaces/mpi/collectives/agreement.h"
#include "interfaces/mpi/communicators.h"
#include "interfaces/mpi/windows/access.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

constexpr int kPosted = 0, kCompleted = 1;  // tags

// Orders this process's accesses to its own memory before and after the accesses of other ranks.
void order_memory() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }

bool is_locked(const Epochs& epochs, int target) {
  return epochs.all_locked || epochs.held[static_cast<std::size_t>(target)] != Held::kNothing;
}
bool holds_locks(const Epochs& epochs) {
  return epochs.all_locked || std::any_of(epochs.held.begin(), epochs.held.end(), [](Held held) {
           return held != Held::kNothing;
         });
}

void require_no_access_epoch(const Epochs& epochs) {
  require(!holds_locks(epochs), MPI_ERR_RMA_SYNC, "this rank holds a lock of the window");
  require(!epochs.started.has_value(), MPI_ERR_RMA_SYNC, "MPI_Win_start is not completed");
}

void check_assertion(int assertion, int allowed) {
  require((assertion & ~allowed) == 0, MPI_ERR_ASSERT, "assert has a flag that the call has not");
}

// Returns the ranks in the window of the members of a group.
std::vector<int> ranks_of(const Window& window, MPI_Group group) {
  std::vector<int> made;
  for (const int member : group_of(group).members) {
    made.push_back(window.comm->local->find(member));
    require(made.back() != MPI_UNDEFINED,
            MPI_ERR_GROUP,
            "group has a process that is not in the window's group");
  }
  return made;
}

// The content of the messages that begin or end an epoch. It is ignored.
constexpr std::byte kNothing{};

Work send_mark(Window& window, int to, int tag) {
  const std::lock_guard lock(window.comm->starting);
  return window.comm->net->send_async(
      ConstArrayView(&kNothing, 1, DType::kUInt8), to, {.tag = tag});
}
Work receive_mark(Window& window, std::byte& room, int from, int tag) {
  const std::lock_guard lock(window.comm->starting);
  return window.comm->net->recv_async(ArrayView(&room, 1, DType::kUInt8), from, {.tag = tag});
}

PendingMarks receive_marks(Window& window, const std::vector<int>& from, int tag) {
  PendingMarks made;
  made.room.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    made.marks.push_back(receive_mark(window, made.room[i], from[i], tag));
  }
  return made;
}
void wait_for(PendingMarks& pending) {
  for (Work& work : pending.marks) work.wait();
}

// Sends a message to each rank, without waiting for the receivers.
void send_marks(Window& window, const std::vector<int>& to, int tag) {
  std::vector<Work> sent;
  for (const int rank : to) sent.push_back(send_mark(window, rank, tag));
  const std::lock_guard lock(window.epochs.mutex);
  auto& leaving = window.epochs.leaving;
  std::erase_if(leaving, [](Work& work) { return work.test(); });
  for (Work& work : sent) leaving.push_back(std::move(work));
}

bool is_here(const Window& window, int target) { return window.member(target).place >= 0; }

void acquire(Window& window, int target, Held kind) {
  if (kind == Held::kUnchecked) return;
  if (!is_here(window, target)) return lock_remote(window, target, kind);
  const TargetLocks locks = window.locks(target);
  const int self = window.comm->rank;
  if (kind == Held::kExclusive) return locks.lock_exclusive(self, window.check());
  await(window.check(), [&] { return locks.try_lock_shared(self); });
}
bool try_acquire_shared(Window& window, int target) {
  if (!is_here(window, target)) return try_lock_shared_remote(window, target);
  return window.locks(target).try_lock_shared(window.comm->rank);
}
void release(Window& window, int target, Held kind) {
  if (kind == Held::kUnchecked) return;
  if (!is_here(window, target)) return unlock_remote(window, target, kind);
  window.locks(target).unlock(window.comm->rank, kind);
}

// Takes the shared lock of every target. It waits for a lock only while it holds none, so that it
// cannot deadlock with ranks that lock several targets.
void acquire_all(Window& window) {
  for (int target = 0; target < window.ranks();) {
    if (try_acquire_shared(window, target)) {
      ++target;
      continue;
    }
    const int blocked = target;
    while (target > 0) release(window, --target, Held::kShared);
    acquire(window, blocked, Held::kShared);
    release(window, blocked, Held::kShared);
  }
}

// Returns the state for a lock of this type and assertion.
Held held_by(int lock_type, int assertion) {
  require(lock_type == MPI_LOCK_EXCLUSIVE || lock_type == MPI_LOCK_SHARED,
          MPI_ERR_LOCKTYPE,
          "lock_type is neither MPI_LOCK_EXCLUSIVE nor MPI_LOCK_SHARED");
  if ((assertion & MPI_MODE_NOCHECK) != 0) return Held::kUnchecked;
  return lock_type == MPI_LOCK_EXCLUSIVE ? Held::kExclusive : Held::kShared;
}

void flush(MPI_Win win, std::optional<int> target) {
  const auto window = window_of(win);
  if (target == MPI_PROC_NULL) return;
  if (target) check_target(*window, *target);
  {
    const std::lock_guard lock(window->epochs.mutex);
    require(target ? is_locked(window->epochs, *target) : holds_locks(window->epochs),
            MPI_ERR_RMA_SYNC,
            "the target is not locked by this rank");
  }
  order_memory();
  window->look_at_members();
}

}  // namespace

void require_access(Window& window, int target) {
  const Epochs& epochs = window.epochs;
  const std::lock_guard lock(window.epochs.mutex);
  if (epochs.fence_is_open || is_locked(epochs, target)) return;
  require(epochs.started.has_value(),
          MPI_ERR_RMA_SYNC,
          "this rank is in no epoch in which it may access the target");
  const auto& started = *epochs.started;
  require(std::find(started.begin(), started.end(), target) != started.end(),
          MPI_ERR_RMA_SYNC,
          "the target is not in the group of MPI_Win_start");
}

void require_no_epoch(Window& window) {
  const std::lock_guard lock(window.epochs.mutex);
  require_no_access_epoch(window.epochs);
  require(!window.epochs.posted.has_value(), MPI_ERR_RMA_SYNC, "MPI_Win_post is not ended");
}

}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Win_fence(int assertion, MPI_Win win) {
  const auto window = window_of(win);
  order_memory();
  agree(*window->comm, [&] {
    check_assertion(assertion,
                    MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED);
    require_no_epoch(*window);
  });
  order_memory();
  const std::lock_guard lock(window->epochs.mutex);
  window->epochs.fence_is_open = (assertion & MPI_MODE_NOSUCCEED) == 0;
}

// --- Post, start, complete, wait -----------------------------------------------------------------

// MPI_MODE_NOCHECK changes nothing here: messages are still sent and awaited.
void Win_post(MPI_Group group, int assertion, MPI_Win win) {
  const auto window = window_of(win);
  check_assertion(assertion, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT);
  const std::vector<int> origins = ranks_of(*window, group);
  {
    const std::lock_guard lock(window->epochs.mutex);
    require(!window->epochs.posted.has_value(), MPI_ERR_RMA_SYNC, "MPI_Win_post is not ended");
    window->epochs.posted = receive_marks(*window, origins, kCompleted);
    window->epochs.fence_is_open = false;
  }
  order_memory();
  send_marks(*window, origins, kPosted);
}
void Win_start(MPI_Group group, int assertion, MPI_Win win) {
  const auto window = window_of(win);
  check_assertion(assertion, MPI_MODE_NOCHECK);
  std::vector<int> targets = ranks_of(*window, group);
  {
    const std::lock_guard lock(window->epochs.mutex);
    require_no_access_epoch(window->epochs);
    window->epochs.fence_is_open = false;
    window->epochs.started.emplace();
  }
  try {
    PendingMarks posts = receive_marks(*window, targets, kPosted);
    wait_for(posts);
  } catch (...) {
    const std::lock_guard lock(window->epochs.mutex);
    window->epochs.started.reset();
    throw;
  }
  order_memory();
  const std::lock_guard lock(window->epochs.mutex);
  window->epochs.started = std::move(targets);
}
void Win_complete(MPI_Win win) {
  const auto window = window_of(win);
  std::vector<int> targets;
  {
    const std::lock_guard lock(window->epochs.mutex);
    require(window->epochs.started.has_value(), MPI_ERR_RMA_SYNC, "MPI_Win_start was not called");
    targets = *std::exchange(window->epochs.started, std::nullopt);
  }
  order_memory();
  send_marks(*window, targets, kCompleted);
}
void Win_wait(MPI_Win win) {
  const auto window = window_of(win);
  std::optional<PendingMarks> posted;
  {
    const std::lock_guard lock(window->epochs.mutex);
    require(window->epochs.posted.has_value(), MPI_ERR_RMA_SYNC, "MPI_Win_post was not called");
    posted = std::exchange(window->epochs.posted, std::nullopt);
  }
  wait_for(*posted);
  order_memory();
}
void Win_test(MPI_Win win, int* flag) {
  const auto window = window_of(win);
  {
    const std::lock_guard lock(window->epochs.mutex);
    require(window->epochs.posted.has_value(), MPI_ERR_RMA_SYNC, "MPI_Win_post was not called");
    auto& marks = window->epochs.posted->marks;
    *flag = std::all_of(marks.begin(), marks.end(), [](Work& work) { return work.test(); });
  }
  if (*flag) Win_wait(win);
}

// --- Locks ---------------------------------------------------------------------------------------

void Win_lock(int lock_type, int rank, int assertion, MPI_Win win) {
  const auto window = window_of(win);
  const Held kind = held_by(lock_type, assertion);
  check_assertion(assertion, MPI_MODE_NOCHECK);
  if (rank == MPI_PROC_NULL) return;
  check_target(*window, rank);
  Epochs& epochs = window->epochs;
  Held& held = epochs.held[static_cast<std::size_t>(rank)];
  {
    const std::lock_guard lock(epochs.mutex);
    require(!is_locked(epochs, rank), MPI_ERR_RMA_SYNC, "the target is locked by this rank");
    require(!epochs.started.has_value(), MPI_ERR_RMA_SYNC, "MPI_Win_start is not completed");
    epochs.fence_is_open = false;
    held = kind;
  }
  try {
    acquire(*window, rank, kind);
  } catch (...) {
    const std::lock_guard lock(epochs.mutex);
    held = Held::kNothing;
    throw;
  }
  order_memory();
}
void Win_unlock(int rank, MPI_Win win) {
  const auto window = window_of(win);
  if (rank == MPI_PROC_NULL) return;
  check_target(*window, rank);
  Held kind = Held::kNothing;
  {
    const std::lock_guard lock(window->epochs.mutex);
    kind = std::exchange(window->epochs.held[static_cast<std::size_t>(rank)], Held::kNothing);
  }
  require(kind != Held::kNothing, MPI_ERR_RMA_SYNC, "the target is not locked by this rank");
  order_memory();
  release(*window, rank, kind);
}
void Win_lock_all(int assertion, MPI_Win win) {
  const auto window = window_of(win);
  check_assertion(assertion, MPI_MODE_NOCHECK);
  Epochs& epochs = window->epochs;
  {
    const std::lock_guard lock(epochs.mutex);
    require_no_access_epoch(epochs);
    epochs.fence_is_open = false;
    epochs.all_locked = true;
  }
  try {
    if ((assertion & MPI_MODE_NOCHECK) == 0) acquire_all(*window);
  } catch (...) {
    const std::lock_guard lock(epochs.mutex);
    epochs.all_locked = false;
    throw;
  }
  order_memory();
}
void Win_unlock_all(MPI_Win win) {
  const auto window = window_of(win);
  {
    const std::lock_guard lock(window->epochs.mutex);
    require(window->epochs.all_locked, MPI_ERR_RMA_SYNC, "MPI_Win_lock_all was not called");
    window->epochs.all_locked = false;
  }
  order_memory();
  for (int target = 0; target < window->ranks(); ++target) {
    release(*window, target, Held::kShared);
  }
}

void Win_flush(int rank, MPI_Win win) { flush(win, rank); }
void Win_flush_all(MPI_Win win) { flush(win, std::nullopt); }
void Win_flush_local(int rank, MPI_Win win) { flush(win, rank); }
void Win_flush_local_all(MPI_Win win) { flush(win, std::nullopt); }
// Programs call it in a loop to wait for another rank's store. So it throws if a rank of the window
// has died.
void Win_sync(MPI_Win win) {
  const auto window = window_of(win);
  order_memory();
  window->look_at_members();
}

}  // namespace hocket::mpi::call
