// The list of groups with members on several hosts, as the network finds them.
#include <chrono>

#include "foundation/base/deadline.h"
#include "foundation/base/poll.h"
#include "membership/control/host.h"

namespace hocket::control {

GroupEntry* HostControl::take_entry(const Listing& group) noexcept {
  for (GroupEntry& entry : groups()) {
    std::uint32_t free = 0;
    if (!entry.taken.compare_exchange_strong(free, 1, std::memory_order_acquire)) continue;
    // A reader of the group that was here before sees that it is gone.
    base::thread_fence(std::memory_order_release);
    entry.news.store(0, std::memory_order_relaxed);
    entry.block.store(group.block, std::memory_order_relaxed);
    entry.size.store(static_cast<std::uint32_t>(group.size), std::memory_order_relaxed);
    return &entry;
  }
  return nullptr;
}

GroupEntry* HostControl::enlist(const Listing& group, Duration patience) noexcept {
  GroupEntry* entry = nullptr;
  const auto is_listed = [&] {
    entry = take_entry(group);
    if (entry == nullptr) ring_network();
    return entry != nullptr;
  };
  base::poll_until(is_listed, base::Deadline::in(patience), std::chrono::microseconds(100));
  if (entry != nullptr) entry->id.store(group.id, std::memory_order_release);
  return entry;
}

GroupEntry* HostControl::enlist_once(base::Atomic<std::uint32_t>& listed,
                                     const Listing& group) noexcept {
  std::uint32_t number = listed.load(std::memory_order_acquire);
  if (number == 0) {
    GroupEntry* entry = take_entry(group);
    if (entry == nullptr) return nullptr;
    const auto own = static_cast<std::uint32_t>(entry - groups_) + 1;
    if (listed.compare_exchange_strong(number, own, std::memory_order_acq_rel)) {
      number = own;
    } else {
      entry->taken.store(0, std::memory_order_release);
    }
  }
  if (number > kGroups) return nullptr;
  // The rank that took the entry may have ended before this step. Each rank writes the same here.
  GroupEntry& entry = groups_[number - 1];
  entry.id.store(group.id, std::memory_order_release);
  tell_network(entry, GroupEntry::kAsked);
  return &entry;
}

GroupEntry* HostControl::find_group(std::uint64_t id) const noexcept {
  for (GroupEntry& entry : groups()) {
    if (entry.id.load(std::memory_order_acquire) == id) return &entry;
  }
  return nullptr;
}

void HostControl::tell_network(GroupEntry& entry, GroupEntry::News news) noexcept {
  entry.news.fetch_or(news, std::memory_order_acq_rel);
  ring_network();
}

}  // namespace hocket::control
