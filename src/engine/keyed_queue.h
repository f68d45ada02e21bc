// Queues with a search by rank and tag. Some hold messages that wait for a receive, and some hold
// receives that wait for a message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>
#include <vector>

#include "engine/point_to_point.h"

namespace hocket::engine {

// A resource: entries in the order of their insertion. Entries are also chained by a hash of their
// key, so a search by key takes no longer if there are many other entries. An empty queue allocates
// nothing, and the memory of removed entries is reused. `pop` never throws.
template <typename Value>
class KeyedQueue {
 public:
  struct Key {
    int peer = 0;
    Tag tag = 0;
    bool operator==(const Key&) const = default;
  };
  // Users may change `value` only. The other members belong to the queue.
  struct Entry {
    Value value;
    Key key;
    std::uint64_t number = 0;  // increases from entry to entry
    typename std::list<Entry>::iterator self;
    Entry* next = nullptr;  // in the same chain
  };

  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }

  void push(const Key& key, Value value) {
    if (entries_.size() >= 2 * chains_.size()) grow();
    if (spare_.empty()) {
      entries_.push_back({.value = std::move(value), .key = {}, .self = {}});
    } else {
      spare_.front().value = std::move(value);
      entries_.splice(entries_.end(), spare_, spare_.begin());
    }
    Entry& entry = entries_.back();
    entry.self = std::prev(entries_.end());
    entry.key = key;
    entry.number = ++last_number_;
    link(entry);
  }

  // Returns the first entry of this key. Null: none.
  Entry* find(const Key& key) noexcept {
    if (entries_.empty()) return nullptr;
    Entry* entry = chain_of(key).first;
    while (entry != nullptr && !(entry->key == key)) entry = entry->next;
    return entry;
  }
  // Return the first or last entry for which `fits` is true, among all entries.
  template <typename Fits>
  Entry* find_if(Fits fits) {
    const auto found = std::find_if(entries_.begin(), entries_.end(), fits);
    return found == entries_.end() ? nullptr : &*found;
  }
  template <typename Fits>
  Entry* find_last_if(Fits fits) {
    const auto found = std::find_if(entries_.rbegin(), entries_.rend(), fits);
    return found == entries_.rend() ? nullptr : &*found;
  }

  // Removes an entry and returns its value.
  Value pop(Entry& entry) noexcept {
    unlink(entry);
    Value value = std::exchange(entry.value, Value());
    spare_.splice(spare_.begin(), entries_, entry.self);
    return value;
  }

 private:
  struct Chain {
    Entry* first = nullptr;
    Entry* last = nullptr;
  };

  Chain& chain_of(const Key& key) noexcept {
    // Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4). The upper bits of the
    // product are the best mixed ones, and 32 of them are enough: there are at most 2^32 chains.
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
    const std::uint64_t mixed =
        (key.tag * kGolden ^ static_cast<std::uint32_t>(key.peer)) * kGolden;
    return chains_[(mixed >> 32) & (chains_.size() - 1)];
  }
  void link(Entry& entry) noexcept {
    Chain& chain = chain_of(entry.key);
    entry.next = nullptr;
    (chain.first == nullptr ? chain.first : chain.last->next) = &entry;
    chain.last = &entry;
  }
  void unlink(Entry& entry) noexcept {
    Chain& chain = chain_of(entry.key);
    Entry* before = nullptr;
    for (Entry* at = chain.first; at != &entry; at = at->next) before = at;
    (before == nullptr ? chain.first : before->next) = entry.next;
    if (chain.last == &entry) chain.last = before;
  }
  void grow() {
    chains_.assign(std::max<std::size_t>(8, 2 * chains_.size()), {});
    for (Entry& entry : entries_) link(entry);
  }

  std::list<Entry> entries_;
  std::list<Entry> spare_;
  std::vector<Chain> chains_;  // the number is a power of two
  std::uint64_t last_number_ = 0;
};

// The messages of one rank that wait for their receives.
template <typename Message>
class UnexpectedMessages {
 public:
  using Entry = typename KeyedQueue<Message>::Entry;

  bool empty() const noexcept { return queue_.empty(); }
  void push(Tag tag, Message message) { queue_.push({0, tag}, std::move(message)); }
  // Returns the first message that a receive with `tag` takes; `tag` may be kAnyTag. Null: none.
  Entry* find(Tag tag) noexcept {
    if (tag != kAnyTag) return queue_.find({0, tag});
    return queue_.find_if([](const Entry& entry) { return entry.key.tag < kAnyTag; });
  }
  // Returns the last entry for whose value `fits` is true.
  template <typename Fits>
  Entry* find_last_if(Fits fits) {
    return queue_.find_last_if([&](const Entry& entry) { return fits(entry.value); });
  }
  Message pop(Entry& entry) noexcept { return queue_.pop(entry); }

 private:
  KeyedQueue<Message> queue_;
};

// Receives that wait for a message. They may accept any rank and any tag.
template <typename Value>
class Receives {
 public:
  using Entry = typename KeyedQueue<Value>::Entry;

  bool empty() const noexcept { return queue_.empty(); }
  void push(const Envelope& wanted, Value value) {
    queue_.push({wanted.peer, wanted.tag}, std::move(value));
    if (names_any(wanted.peer, wanted.tag)) ++with_any_;
  }
  // Returns the first receive that accepts a message of `source` with `tag`. Null: none.
  Entry* find(int source, Tag tag) noexcept {
    Entry* first = queue_.find({source, tag});
    if (with_any_ == 0) return first;
    for (const int peer : {source, kAnyPeer}) {
      for (const Tag one : {tag, kAnyTag}) {
        if (!names_any(peer, one) || (one == kAnyTag && tag >= kAnyTag)) continue;
        Entry* const found = queue_.find({peer, one});
        if (found != nullptr && (first == nullptr || found->number < first->number)) {
          first = found;
        }
      }
    }
    return first;
  }
  Value pop(Entry& entry) noexcept {
    if (names_any(entry.key.peer, entry.key.tag)) --with_any_;
    return queue_.pop(entry);
  }
  // Removes `value` if it is there.
  void erase(const Value& value) noexcept {
    Entry* const found = queue_.find_if([&](const Entry& entry) { return entry.value == value; });
    if (found != nullptr) pop(*found);
  }

 private:
  static constexpr bool names_any(int peer, Tag tag) noexcept {
    return peer == kAnyPeer || tag == kAnyTag;
  }

  KeyedQueue<Value> queue_;
  std::size_t with_any_ = 0;
};

}  // namespace hocket::engine
