// The queue of a simulation's events.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hocket::scaling {

// Picoseconds since the simulation began: whole numbers, so that sums do not depend on their order.
using Time = std::uint64_t;

enum class What : std::uint8_t {
  kStep,    // a rank goes on; `id`: which
  kInject,  // a message is at its sender's port; `id`: which
  kHead,    // its first byte is at its receiver's port
  kArrive,  // its last byte is there
  kSent,    // a long message has left; `id`: the sender's slot
};

// A value.
struct Event {
  Time time = 0;
  std::uint32_t id = 0;
  What what = What::kStep;
};

// A resource: a radix heap, as time never runs backwards. Events of one time come out in the order
// they went in, so that a simulation does the same thing each time.
class EventQueue {
 public:
  bool empty() const noexcept { return size_ == 0; }

  // `event` is not before the time of the last event that was taken.
  void push(Event event) {
    buckets_[static_cast<std::size_t>(std::bit_width(event.time ^ now_))].push_back(event);
    ++size_;
  }

  // There is one.
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

  std::array<std::vector<Event>, 65> buckets_;  // by the highest bit that differs from `now_`
  std::size_t next_ = 0;                        // in the first bucket
  std::size_t size_ = 0;
  Time now_ = 0;
};

}  // namespace hocket::scaling
