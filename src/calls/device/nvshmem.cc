// Symmetric memory from NVSHMEM's heap. Calls of NVSHMEM wait for its PEs without a time limit. So
// before each such call, all ranks report that they have come, and their state.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "calls/device/memory.h"
#include "foundation/cuda/memory.h"

namespace hocket::device {

using base::Deadline;
using engine::Signature;

namespace {

std::shared_ptr<nvshmem::Heap> find_heap(DeviceJobContext& job) {
  if (job.threads()) {
    throw InvalidArgument(
        "the ranks are threads of one process, and NVSHMEM's PEs are processes of their own");
  }
  std::string why_not;
  auto heap = job.device_libraries().nvshmem(why_not);
  if (!heap) throw InvalidArgument(why_not);
  return heap;
}

// Returns a random number, never 0, that names a world of NVSHMEM that hocket did not start.
std::uint64_t some_name() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random() | 1;
}

}  // namespace

// Gathers the facts of all ranks. `heap` is this rank's heap, or null if its facts say why.
std::vector<nvshmem::Facts> DeviceMemory::gather_nvshmem(std::shared_ptr<nvshmem::Heap>& heap,
                                                         const Signature& shown,
                                                         std::optional<Duration> allowed) {
  nvshmem::Facts own;
  try {
    session_.require_device({});
    heap = find_heap(job_);
    own = heap->facts(*session_.gpu());
  } catch (const Error& error) {
    own.why_not = error.what();
  }
  return session_.gather_values(own, shown, allowed);
}

// Returns how this rank waits in a collective call of NVSHMEM. The ranks report the end of that
// call in their next call, so all ranks are needed until then.
nvshmem::Wait DeviceMemory::wait_for_nvshmem(const Signature& shown,
                                             std::optional<Duration> allowed) {
  const Duration patience = allowed.value_or(owner_.deadline());
  return {.look = session_.looking(),
          .late =
              [this, next = owner_.ledger().last() + 1, shown, patience] {
                control::Failure failure = owner_.inquiry().lateness({.sequence = next}, patience);
                failure.signature = shown;
                owner_.failures.raise(failure);
              },
          .deadline = Deadline::in(patience)};
}

// Makes a collective call of NVSHMEM, in which other ranks may wait for this rank. If the call
// fails here, this rank refuses the next call, and the waiting ranks learn of the failure at once.
void DeviceMemory::in_nvshmem(const std::string& what,
                              const Signature& shown,
                              std::optional<Duration> allowed,
                              const std::function<void(const nvshmem::Wait&)>& call) {
  try {
    call(wait_for_nvshmem(shown, allowed));
  } catch (const DeviceError& error) {
    owner_.require_usable();  // throws the group's failure if there is one
    owner_.refuse(shown.kind, InvalidArgument(text_of_refusal(owner_.rank(), what, error.what())));
  } catch (const InvalidArgument&) {
    // Another rank has refused that call. This rank gets the refusal when it makes the call.
  }
}

void DeviceMemory::start_nvshmem(nvshmem::Heap& heap,
                                 const Signature& shown,
                                 std::optional<Duration> allowed) {
  constexpr const char* kWhat = "NVSHMEM's start";
  nvshmem::UniqueId id;
  std::string why_not;
  try {
    if (owner_.rank() == 0) id = heap.new_id();
  } catch (const DeviceError& error) {
    why_not = error.what();
  }
  tell(kWhat, why_not, shown, allowed);
  id = session_.gather_values(id, shown, allowed).front();
  in_nvshmem(kWhat, shown, allowed, [&](const nvshmem::Wait& wait) {
    heap.start(session_.gpu(), id, owner_.rank(), owner_.size(), wait);
  });
  tell(kWhat, "", shown, allowed);
}

// Frees memory that all ranks have released. Views end at any time, but NVSHMEM's free is
// collective.
void DeviceMemory::take_back_dropped(nvshmem::Heap& heap,
                                     const Signature& shown,
                                     std::optional<Duration> allowed) {
  std::vector<std::byte> dropped = heap.dropped();
  if (dropped.empty()) return;
  const auto all = session_.gather(shown, dropped, allowed);
  for (std::size_t i = 0; i < all.size(); ++i) dropped[i % dropped.size()] &= all[i];
  in_nvshmem("memory to give back", shown, allowed, [&](const nvshmem::Wait& wait) {
    heap.give_back(session_.gpu(), dropped, wait);
  });
}

std::shared_ptr<DeviceBlock> DeviceMemory::allocate_from_nvshmem(std::size_t bytes,
                                                                 const Signature& shown,
                                                                 std::string name,
                                                                 std::optional<Duration> allowed) {
  const call::Membership& membership = owner_.membership();
  std::shared_ptr<nvshmem::Heap> heap;
  const auto facts = gather_nvshmem(heap, shown, allowed);
  const auto agreed = nvshmem::agree(facts, owner_.size() == job_.size());
  if (!agreed.why_not.empty()) {
    throw InvalidArgument(
        fmt::format("there is no memory of NVSHMEM's heap for {}: {}", name, agreed.why_not));
  }
  if (agreed.start) start_nvshmem(*heap, shown, allowed);
  if (agreed.name) heap->name_world(session_.gather_values(some_name(), shown, allowed).front());
  take_back_dropped(*heap, shown, allowed);
  tell(name, heap->why_no_room(*session_.gpu(), bytes), shown, allowed);

  nvshmem::Heap::HeapBlock piece;
  DeviceBlockParts parts{.name = name,
                         .world_ranks = membership.world_ranks,
                         .rank = owner_.rank(),
                         .bytes = bytes,
                         .pieces = {},
                         .memory = nullptr};
  in_nvshmem(name, shown, allowed, [&](const nvshmem::Wait& wait) {
    piece = heap->allocate(session_.gpu(), bytes, wait);
  });
  std::string why_not;
  if (piece.address == nullptr) {
    why_not = fmt::format("NVSHMEM's heap has no room for {} bytes", bytes);
  }
  for (const int pe : agreed.pes) {
    std::byte* address = piece.address == nullptr ? nullptr : heap->peer(piece.address, pe);
    parts.pieces.push_back(address);
    parts.direct = parts.direct && address != nullptr;
  }
  if (why_not.empty()) {
    parts.pieces[static_cast<std::size_t>(owner_.rank())] = piece.address;
    const int device = cuda::whereabouts(session_.gpu()->driver(), piece.address).device;
    if (device != session_.gpu()->ordinal()) {
      why_not = fmt::format("NVSHMEM's heap lies on GPU {}, and this rank's GPU is {}",
                            device,
                            session_.gpu()->ordinal());
    }
  }
  tell(name, why_not, shown, allowed);
  const auto reached = session_.gather_values(std::byte{parts.direct}, shown, allowed);
  parts.direct = std::ranges::all_of(reached, [](std::byte b) { return b != std::byte{0}; });
  // The number is equal on all ranks, as in `allocate`.
  parts.id = owner_.ledger().last() << 16 ^ owner_.ledger().fingerprint();
  parts.memory = std::move(piece.lease);
  auto block = std::make_shared<DeviceBlock>(session_.gpu(), std::move(parts));
  block->wait_at_end(owner_.deadline());
  job_.device_blocks().add(block);
  return block;
}

std::int32_t DeviceMemory::nvshmem_team(std::optional<Duration> allowed) {
  if (nvshmem_team_) return *nvshmem_team_;
  const Signature shown{.kind = engine::Kind::kNvshmemTeam, .memory = MemoryKind::kCuda};
  std::shared_ptr<nvshmem::Heap> heap;
  const auto facts = gather_nvshmem(heap, shown, allowed);
  const auto agreed = nvshmem::agree_team(facts, owner_.size() == job_.size());
  const std::string what = fmt::format("a team of communicator {}", owner_.membership().name);
  if (!agreed.why_not.empty()) {
    throw InvalidArgument(fmt::format("NVSHMEM makes no team: {}", agreed.why_not));
  }
  if (agreed.whole_world) {
    nvshmem_team_ = nvshmem::kWorldTeam;
    return *nvshmem_team_;
  }
  nvshmem::TeamId id = 0;
  std::string why_not;
  try {
    if (owner_.rank() == 0) id = heap->new_team_id();
  } catch (const DeviceError& error) {
    why_not = error.what();
  }
  tell(what, why_not, shown, allowed);
  id = session_.gather_values(id, shown, allowed).front();
  nvshmem::Team team = nvshmem::kInvalidTeam;
  in_nvshmem(what, shown, allowed, [&](const nvshmem::Wait& wait) {
    team = heap->make_team(session_.gpu(), id, owner_.rank(), owner_.size(), wait);
  });
  tell(what, "", shown, allowed);
  nvshmem_team_ = team;
  return team;
}

}  // namespace hocket::device
