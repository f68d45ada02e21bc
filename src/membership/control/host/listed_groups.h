// The list of groups with members on several hosts. The network's thread finds the groups by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foundation/base/atomic.h"
#include "foundation/base/deadline.h"
#include "membership/control/host/doorbells.h"
#include "membership/control/host/view.h"

namespace hocket::control {

// An entry of the list. A member of the group fills it, and writes `id` last. Only the network
// thread clears `id`, which removes the group.
struct alignas(kCacheLine) GroupEntry {
  enum News : std::uint32_t { kFailed = 1, kRefused = 2, kAsked = 4, kCome = 8 };
  base::Atomic<std::uint64_t> id{0};
  base::Atomic<std::uint32_t> taken{0};  // 1: in use
  base::Atomic<std::uint32_t> news{0};   // bits of News, to be sent to the other hosts
  base::Atomic<std::uint32_t> size{0};   // number of members
  base::Atomic<std::uint64_t> block{0};  // offset of the group's block
};
inline constexpr std::size_t kGroups = 1024;

class GoneGroups;
class KeptFacts;

// The list in the segment, and the facts about groups that are not on the list. A view: the segment
// and the doorbells outlive it. In a job of one host the list is empty. Any thread.
class ListedGroups {
 public:
  // The structures in the segment; null in a job of one host.
  struct Mapped {
    GroupEntry* entries = nullptr;
    KeptFacts* farewells = nullptr;
    KeptFacts* forerunners = nullptr;
    GoneGroups* gone = nullptr;
  };
  ListedGroups(const Mapped& mapped, Doorbells& doorbells) noexcept
      : mapped_(mapped), doorbells_(doorbells) {}

  struct Listing {
    std::uint64_t id = 0;
    std::uint64_t block = 0;
    int size = 0;
  };
  // Adds a group to the list. Null: the list is full, and no entry becomes free within `patience`.
  // The rank that speaks for this host removes a group when all its members have closed it.
  GroupEntry* enlist(const Listing& group, Duration patience = {}) noexcept;
  // Adds a group to the list once, even if several members call this at the same time. `listed` is
  // a word of the group's block that records the entry. Also asks the other hosts for their facts
  // about the group. Null: the list is full.
  GroupEntry* enlist_once(base::Atomic<std::uint32_t>& listed, const Listing& group) noexcept;
  // Returns the entry of a group. Null: the group is not on the list.
  GroupEntry* find(std::uint64_t id) const noexcept;
  std::span<GroupEntry> entries() const noexcept {
    return {mapped_.entries, mapped_.entries == nullptr ? 0 : kGroups};
  }
  // Marks news for the other hosts in `entry`, and wakes the rank that speaks for this host.
  void tell_network(GroupEntry& entry, GroupEntry::News news) noexcept;

  // The next three structures exist only if there are other hosts. `farewells` has facts about this
  // host's ranks, in groups that were removed from the list.
  KeptFacts& farewells() const noexcept { return *mapped_.farewells; }
  // `forerunners` has facts about other hosts' ranks, in groups that are not on the list yet.
  KeptFacts& forerunners() const noexcept { return *mapped_.forerunners; }
  GoneGroups& gone() const noexcept { return *mapped_.gone; }

 private:
  GroupEntry* take_entry(const Listing& group) noexcept;

  Mapped mapped_;
  Doorbells& doorbells_;
};

}  // namespace hocket::control
