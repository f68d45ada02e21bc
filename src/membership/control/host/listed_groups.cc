#include "membership/control/host/listed_groups.h"

#include <chrono>

#include "foundation/base/deadline.h"
#include "foundation/base/poll.h"

namespace hocket::control {

GroupEntry* ListedGroups::take_entry(const Listing& group) noexcept {
  for (GroupEntry& entry : entries()) {
    std::uint32_t free = 0;
    if (!entry.taken.compare_exchange_strong(free, 1, std::memory_order_acquire)) continue;
    // Pairs with GroupMirror::of: a thread that still reads the group which had this entry before
    // must see that it is gone.
    base::thread_fence(std::memory_order_release);
    entry.news.store(0, std::memory_order_relaxed);
    entry.block.store(group.block, std::memory_order_relaxed);
    entry.size.store(static_cast<std::uint32_t>(group.size), std::memory_order_relaxed);
    return &entry;
  }
  return nullptr;
}

GroupEntry* ListedGroups::enlist(const Listing& group, Duration patience) noexcept {
  GroupEntry* entry = nullptr;
  const auto is_listed = [&] {
    entry = take_entry(group);
    if (entry == nullptr) doorbells_.ring_network();
    return entry != nullptr;
  };
  base::poll_until(is_listed, base::Deadline::in(patience), std::chrono::microseconds(100));
  if (entry != nullptr) entry->id.store(group.id, std::memory_order_release);
  return entry;
}

GroupEntry* ListedGroups::enlist_once(base::Atomic<std::uint32_t>& listed,
                                      const Listing& group) noexcept {
  std::uint32_t number = listed.load(std::memory_order_acquire);
  if (number == 0) {
    GroupEntry* entry = take_entry(group);
    if (entry == nullptr) return nullptr;
    const auto own = static_cast<std::uint32_t>(entry - mapped_.entries) + 1;
    if (listed.compare_exchange_strong(number, own, std::memory_order_acq_rel)) {
      number = own;
    } else {
      entry->taken.store(0, std::memory_order_release);
    }
  }
  if (number > kGroups) return nullptr;
  // Every rank writes the id, all the same value, because the rank that took the entry may have
  // ended before this step.
  GroupEntry& entry = mapped_.entries[number - 1];
  entry.id.store(group.id, std::memory_order_release);
  tell_network(entry, GroupEntry::kAsked);
  return &entry;
}

GroupEntry* ListedGroups::find(std::uint64_t id) const noexcept {
  for (GroupEntry& entry : entries()) {
    if (entry.id.load(std::memory_order_acquire) == id) return &entry;
  }
  return nullptr;
}

void ListedGroups::tell_network(GroupEntry& entry, GroupEntry::News news) noexcept {
  entry.news.fetch_or(news, std::memory_order_acq_rel);
  doorbells_.ring_network();
}

}  // namespace hocket::control
