#include "engines/shm/channel.h"

#include <algorithm>
#include <cstring>

#include "core/reduce.h"

namespace hocket::engines::shm {
namespace {

constexpr std::size_t kHeader = sizeof(RecordHeader);

std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

// Here `limit_` is the reader's tail.
std::size_t Channel::room(std::size_t wanted, std::size_t least) noexcept {
  for (int look = 0; look < 2; ++look) {
    const std::size_t free = capacity_ - static_cast<std::size_t>(position_ - limit_);
    const std::size_t here = std::min(free, contiguous(position_));
    if (here >= kHeader + padded(least)) return std::min(wanted, here - kHeader);
    // The rest of the ring is too short: skip it, if then there is room at the beginning.
    const std::size_t rest = contiguous(position_);
    if (rest < kHeader + padded(least) && free >= rest + kHeader + padded(least)) {
      const RecordHeader skip{.bytes = static_cast<std::uint32_t>(rest - kHeader)};
      std::memcpy(ring_ + position_ % capacity_, &skip, sizeof(skip));
      position_ += rest;
      words_->head.store(position_, std::memory_order_release);
      continue;
    }
    limit_ = words_->tail.load(std::memory_order_acquire);  // pairs with pop
  }
  const std::size_t free = capacity_ - static_cast<std::size_t>(position_ - limit_);
  const std::size_t here = std::min(free, contiguous(position_));
  return here >= kHeader + padded(least) ? std::min(wanted, here - kHeader) : 0;
}

void Channel::write(RecordHeader header, std::span<const std::byte> payload) noexcept {
  header.bytes = static_cast<std::uint32_t>(payload.size());
  std::byte* at = ring_ + position_ % capacity_;
  if (!payload.empty()) {
    core::copy(at + kHeader, payload.data(), payload.size(), core::Stores::kCached);
  }
  std::memcpy(at, &header, kHeader);
  position_ += kHeader + padded(payload.size());
  words_->head.store(position_, std::memory_order_release);  // pairs with front
}

// Here `limit_` is the writer's head.
std::optional<Channel::Record> Channel::front() noexcept {
  for (;;) {
    if (limit_ == position_) {
      limit_ = words_->head.load(std::memory_order_acquire);
      if (limit_ == position_) return std::nullopt;
    }
    Record record;
    const std::byte* at = ring_ + position_ % capacity_;
    std::memcpy(&record.header, at, kHeader);
    record.payload = at + kHeader;
    // A peer's length is never believed past the ring's end.
    const std::size_t most = contiguous(position_) - kHeader;
    record.header.bytes =
        static_cast<std::uint32_t>(std::min<std::size_t>(record.header.bytes, most));
    if (record.header.type != RecordType::kSkip) return record;
    pop(record);
  }
}

void Channel::pop(const Record& record) noexcept {
  position_ += kHeader + padded(record.header.bytes);
  words_->tail.store(position_, std::memory_order_release);  // pairs with room
}

}  // namespace hocket::engines::shm
