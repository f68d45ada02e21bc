#include "engines/shm/channel.h"

#include <algorithm>
#include <cstring>

#include "core/reduce.h"

namespace hocket::engines::shm {
namespace {

std::size_t padded(std::size_t bytes) {
  return (bytes + control::kCacheLine - 1) / control::kCacheLine * control::kCacheLine;
}

}  // namespace

void Channel::learn_what_is_done() noexcept {
  const std::uint64_t done = shared_->done.load(std::memory_order_acquire);  // pairs with pop
  if (done <= done_ || done > count_) return;
  done_ = done;
  freed_ = ends_[(done - 1) % ChannelShared::kLines];
}

bool Channel::has_line() noexcept {
  if (count_ - done_ == ChannelShared::kLines) learn_what_is_done();
  return count_ - done_ < ChannelShared::kLines;
}

std::size_t Channel::room(std::size_t wanted, std::size_t least) noexcept {
  if (!has_line()) return 0;
  if (wanted <= RecordLine::kInline) return wanted;
  for (int look = 0; look < 2; ++look) {
    const std::size_t free = capacity_ - static_cast<std::size_t>(position_ - freed_);
    const std::size_t rest = capacity_ - position_ % capacity_;  // to the end of the ring
    const std::size_t here = std::min(free, rest);
    if (here >= padded(least)) return std::min(wanted, here);
    if (here == rest && free - rest >= padded(least)) {
      position_ += rest;
      return std::min<std::size_t>(wanted, free - rest);
    }
    learn_what_is_done();
  }
  return 0;
}

void Channel::write(RecordHeader header, std::span<const std::byte> payload) noexcept {
  RecordLine& line = this->line();
  header.bytes = static_cast<std::uint32_t>(payload.size());
  if (payload.size() > RecordLine::kInline) {
    const std::size_t at = position_ % capacity_;
    header.at = static_cast<std::uint32_t>(at);
    stager_.copy(ring_ + at, payload.data(), payload.size(), payload.size() >= Stager::kCopiedFrom);
    position_ += padded(payload.size());
  } else if (!payload.empty()) {
    std::memcpy(line.payload, payload.data(), payload.size());
  }
  ends_[count_ % ChannelShared::kLines] = position_;
  line.header = header;
  line.stamp.store(++count_, std::memory_order_release);  // pairs with front
}

std::optional<Channel::Record> Channel::front() const noexcept {
  const RecordLine& line = this->line();
  if (line.stamp.load(std::memory_order_acquire) != count_ + 1) return std::nullopt;
  Record record{.header = line.header, .payload = line.payload};
  if (record.header.bytes > RecordLine::kInline) {
    // A peer's position and length are never believed past the ring's end.
    const std::size_t at = std::min<std::size_t>(record.header.at, capacity_);
    record.payload = ring_ + at;
    record.header.bytes =
        static_cast<std::uint32_t>(std::min<std::size_t>(record.header.bytes, capacity_ - at));
  }
  return record;
}

void Channel::pop() noexcept {
  shared_->done.store(++count_, std::memory_order_release);  // pairs with learn_what_is_done
}

}  // namespace hocket::engines::shm
