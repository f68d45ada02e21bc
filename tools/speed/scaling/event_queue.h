// The queue from which a simulation takes its events, ordered by time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hocket::scaling {

// Picoseconds since the simulation began. Whole numbers, because their sums do not depend on the
// order of the addition.
using Time = std::uint64_t;

enum class What : std::uint8_t {
  kStep,    // a rank continues its task; `id`: the rank
  kInject,  // a message reaches its sender's port; `id`: the flight
  kHead,    // the first byte of a message reaches its receiver's port; `id`: the flight
  kArrive,  // the last byte of a message has passed its receiver's port; `id`: the flight
  kSent,    // a long message has left its sender's port; `id`: the sender's slot
};

// A value.
struct Event {
  Time time = 0;
  std::uint32_t id = 0;
  What what = What::kStep;
};

// A resource: a radix heap, which needs times that never decrease. Events with equal times come out
// in the order of their `push`. So a repeated simulation gives the same result.
//
//   buckets_[0]   events at `now_`; `next_` is the index of the next one to take
//   buckets_[k]   events whose time differs from `now_` in bit k - 1, and in no higher bit
class EventQueue {
 public:
  bool empty() const noexcept { return size_ == 0; }

  // The event's time must not be before the last event that `pop` returned.
  void push(Event event) {
    buckets_[static_cast<std::size_t>(std::bit_width(event.time ^ now_))].push_back(event);
    ++size_;
  }

  // Removes and returns the earliest event. The queue must not be empty.
  Event pop() {
    if (next_ == buckets_[0].size()) refill();
    --size_;
    return buckets_[0][next_++];
  }

 private:
  void refill() {
    buckets_[0].clear();
    next_ = 0;
    std::size_t first = 1;
    while (buckets_[first].empty()) ++first;
    std::vector<Event>& from = buckets_[first];
    now_ = from.front().time;
    for (const Event& event : from) now_ = std::min(now_, event.time);
    for (const Event& event : from) {
      buckets_[static_cast<std::size_t>(std::bit_width(event.time ^ now_))].push_back(event);
    }
    from.clear();
  }

  std::array<std::vector<Event>, 65> buckets_;
  std::size_t next_ = 0;
  std::size_t size_ = 0;
  Time now_ = 0;
};

}  // namespace hocket::scaling
