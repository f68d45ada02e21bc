// Symmetric memory from NVSHMEM's heap. NVSHMEM's calls wait for its PEs without an end, so all
// ranks say that they are there, and how they are, before each.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/device_calls.h"
#include "comm/world.h"
#include "cuda/memory.h"

namespace hocket::comm {

using base::Deadline;
using engine::Signature;

namespace {

std::shared_ptr<nvshmem::Heap> find_heap(WorldImpl& world) {
  if (world.threads()) {
    throw InvalidArgument(
        "the ranks are threads of one process, and NVSHMEM's PEs are processes of their own");
  }
  std::string why_not;
  auto heap = world.device_libraries().nvshmem(why_not);
  if (!heap) throw InvalidArgument(why_not);
  return heap;
}

// Where a group meets for NVSHMEM's id: the store's way is authenticated, whatever it is.
std::string key_of(const Membership& membership, std::uint64_t sequence) {
  return fmt::format("nvshmem/{:x}/{}", membership.id(), sequence);
}

}  // namespace

// Of all ranks. `heap`: this rank's, null where its facts say why not.
std::vector<nvshmem::Facts> DeviceCalls::gather_nvshmem(std::shared_ptr<nvshmem::Heap>& heap,
                                                        const Signature& shown,
                                                        std::optional<Duration> allowed) {
  nvshmem::Facts own;
  try {
    require_device({});
    heap = find_heap(*owner_.world());
    own = heap->facts(*device_);
  } catch (const Error& error) {
    const std::string text = error.what();
    std::memcpy(own.why_not, text.data(), std::min(text.size(), sizeof(own.why_not) - 1));
  }
  return gather_values(own, shown, allowed);
}

// What comes next is the ranks' word that they have done it: until that is heard, all are needed.
nvshmem::Wait DeviceCalls::wait_for_nvshmem(const Signature& shown,
                                            std::optional<Duration> allowed) {
  const std::uint64_t next = owner_.sequence_ + 1;
  const Duration patience = allowed.value_or(owner_.deadline());
  return {.look =
              [this, next, doubt = Doubt()]() mutable {
                const auto failure = owner_.look_around({.sequence = next}, doubt);
                if (failure) owner_.raise(*failure);
              },
          .late =
              [this, next, shown, patience] {
                control::Failure failure = owner_.lateness({.sequence = next}, patience);
                failure.signature = shown;
                owner_.raise(failure);
              },
          .deadline = Deadline::in(patience)};
}

void DeviceCalls::start_nvshmem(nvshmem::Heap& heap,
                                const Signature& shown,
                                std::optional<Duration> allowed) {
  constexpr const char* kWhat = "NVSHMEM's start";
  const auto& store = owner_.world()->store();
  const std::string key = key_of(owner_.membership(), owner_.sequence_);
  const bool is_first = owner_.rank() == 0;
  nvshmem::UniqueId id;
  const auto attempt = [&](const auto& step) {
    std::string why_not;
    try {
      step();
    } catch (const DeviceError& error) {
      why_not = error.what();
    } catch (const RendezvousError& error) {
      why_not = error.what();
    }
    tell(kWhat, why_not, shown, allowed);
  };
  attempt([&] {
    if (!is_first) return;
    id = heap.new_id();
    if (owner_.size() > 1) store->set(key, std::as_bytes(std::span(&id, 1)));
  });
  attempt([&] {
    if (is_first) return;
    const Bytes bytes = store->get(key, allowed.value_or(owner_.deadline()));
    if (bytes.size() != sizeof(id)) throw RendezvousError("NVSHMEM's id has another size");
    std::memcpy(&id, bytes.data(), sizeof(id));
  });
  attempt([&] {
    const auto wait = wait_for_nvshmem(shown, allowed);
    heap.start(device_, id, owner_.rank(), owner_.size(), wait);
  });
  if (is_first && owner_.size() > 1) store->erase(key);
}

// What all ranks have dropped: views go when they go, and NVSHMEM's free is collective.
void DeviceCalls::take_back_dropped(nvshmem::Heap& heap,
                                    const Signature& shown,
                                    std::optional<Duration> allowed) {
  std::vector<std::byte> dropped = heap.dropped();
  if (dropped.empty()) return;
  const auto all = gather(shown, dropped, allowed);
  for (std::size_t i = 0; i < all.size(); ++i) dropped[i % dropped.size()] &= all[i];
  heap.give_back(device_, dropped, wait_for_nvshmem(shown, allowed));
}

std::shared_ptr<DeviceBlock> DeviceCalls::allocate_from_nvshmem(std::size_t bytes,
                                                                const Signature& shown,
                                                                std::string name,
                                                                std::optional<Duration> allowed) {
  const Membership& membership = owner_.membership();
  std::shared_ptr<nvshmem::Heap> heap;
  const auto facts = gather_nvshmem(heap, shown, allowed);
  const auto agreed = nvshmem::agree(facts, owner_.size() == owner_.world()->size());
  if (!agreed.why_not.empty()) {
    throw InvalidArgument(
        fmt::format("there is no memory of NVSHMEM's heap for {}: {}", name, agreed.why_not));
  }
  if (agreed.start) start_nvshmem(*heap, shown, allowed);
  take_back_dropped(*heap, shown, allowed);
  tell(name, heap->why_no_room(*device_, bytes), shown, allowed);

  nvshmem::Heap::Piece piece;
  DeviceBlockParts parts{.name = name,
                         .world_ranks = membership.world_ranks,
                         .rank = owner_.rank(),
                         .bytes = bytes,
                         .pieces = {},
                         .memory = nullptr};
  std::string why_not;
  try {
    piece = heap->allocate(device_, bytes, wait_for_nvshmem(shown, allowed));
    if (piece.address == nullptr) {
      why_not = fmt::format("NVSHMEM's heap has no room for {} bytes", bytes);
    }
  } catch (const DeviceError& error) {
    why_not = error.what();
  }
  for (const int pe : agreed.pes) {
    std::byte* address = piece.address == nullptr ? nullptr : heap->peer(piece.address, pe);
    parts.pieces.push_back(address);
    parts.direct = parts.direct && address != nullptr;
  }
  if (why_not.empty()) {
    parts.pieces[static_cast<std::size_t>(owner_.rank())] = piece.address;
    const int device = cuda::whereabouts(device_->driver(), piece.address).device;
    if (device != device_->ordinal()) {
      why_not = fmt::format(
          "NVSHMEM's heap lies on GPU {}, and this rank's GPU is {}", device, device_->ordinal());
    }
  }
  tell(name, why_not, shown, allowed);
  const auto reached = gather_values(std::byte{parts.direct}, shown, allowed);
  parts.direct = std::ranges::all_of(reached, [](std::byte b) { return b != std::byte{0}; });
  // The same on all ranks, as in `allocate`.
  parts.id = owner_.sequence_ << 16 ^ owner_.fingerprint_;
  parts.memory = std::move(piece.lease);
  auto block = std::make_shared<DeviceBlock>(device_, std::move(parts));
  block->wait_at_end(owner_.deadline());
  owner_.world()->device_blocks().add(block);
  return block;
}

std::int32_t DeviceCalls::nvshmem_team(std::optional<Duration> allowed) {
  if (nvshmem_team_) return *nvshmem_team_;
  const Signature shown{.kind = engine::Kind::kSymmetricAllocate,
                        .memory = MemoryKind::kCuda,
                        .extra = engine::kNvshmemTeam};
  std::shared_ptr<nvshmem::Heap> heap;
  const auto facts = gather_nvshmem(heap, shown, allowed);
  const auto agreed = nvshmem::agree_team(facts);
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
  id = gather_values(id, shown, allowed).front();
  nvshmem::Team team = nvshmem::kInvalidTeam;
  try {
    team = heap->make_team(
        device_, id, owner_.rank(), owner_.size(), wait_for_nvshmem(shown, allowed));
  } catch (const DeviceError& error) {
    why_not = error.what();
  }
  tell(what, why_not, shown, allowed);
  nvshmem_team_ = team;
  return team;
}

}  // namespace hocket::comm
