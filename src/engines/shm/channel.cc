#include "engines/shm/channel.h"

#include <algorithm>
#include <cerrno>

#include "foundation/core/claim.h"

namespace hocket::engines::shm {
namespace {

// For payloads shorter than this, the writer claims the next payload's lines in advance. A longer
// payload fetches its lines while it is copied.
constexpr std::size_t kClaimedAhead = std::size_t{3} << 10;

std::size_t padded(std::size_t bytes) {
  return (bytes + control::kCacheLine - 1) / control::kCacheLine * control::kCacheLine;
}

}  // namespace

void RingChannel::learn_what_is_done() noexcept {
  const std::uint64_t done = shared_->done.load(std::memory_order_acquire);  // pairs with pop
  if (done <= done_ || done > count_) return;
  done_ = done;
  freed_ = ends_[place_of(done - 1)];
}

bool RingChannel::has_record() noexcept {
  if (count_ - done_ == records_) learn_what_is_done();
  return count_ - done_ < records_;
}

std::size_t RingChannel::room(std::size_t wanted, std::size_t least) noexcept {
  if (!has_record()) return 0;
  if (wanted <= RecordLines::kInline) return wanted;
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

void RingChannel::write(RecordHeader header,
                        std::span<const std::byte> payload,
                        std::size_t message) noexcept {
  RecordLines& lines = this->lines();
  header.bytes = static_cast<std::uint32_t>(payload.size());
  if (payload.size() > RecordLines::kInline) {
    const std::size_t at = position_ % capacity_;
    header.at = static_cast<std::uint32_t>(at);
    stager_.copy(ring_ + at, payload.data(), payload.size(), message >= Stager::copied_from());
    header.claimable = stager_.claimable() ? 1 : 0;
    position_ += padded(payload.size());
  } else if (!payload.empty()) {
    base::copy_plain(lines.payload, payload.data(), payload.size());
  }
  ends_[place_of(count_)] = position_;
  lines.header = header;
  lines.stamp.store(++count_, std::memory_order_release);  // pairs with front
}

void RingChannel::claim_next(std::size_t bytes) const noexcept {
  if (bytes <= RecordLines::kInline || bytes >= kClaimedAhead || !stager_.claimable()) return;
  const std::size_t at = position_ % capacity_;
  core::claim(ring_ + at, std::min(bytes, capacity_ - at));
}

std::optional<RingChannel::Record> RingChannel::front() const noexcept {
  const RecordLines& lines = this->lines();
  if (lines.stamp.load(std::memory_order_acquire) != count_ + 1) return std::nullopt;
  // A writer of many messages has probably written the next record, too.
  __builtin_prefetch(&shared_->records()[place_of(count_ + 1)]);
  const RecordHeader header = lines.header;
  if (header.bytes <= RecordLines::kInline) {
    return Record{header, {{lines.payload, header.bytes}}};
  }
  // The peer wrote the position and length, so this limits both to the ring.
  const std::size_t at = std::min<std::size_t>(header.at, capacity_);
  const std::size_t bytes = std::min<std::size_t>(header.bytes, capacity_ - at);
  return Record{header, {{ring_ + at, bytes}, header.claimable != 0}};
}

void RingChannel::pop() noexcept {
  shared_->done.store(++count_, std::memory_order_release);  // pairs with learn_what_is_done
}

std::optional<ArrayOffer> RingChannel::expose(const void* array, std::uint64_t ticket) noexcept {
  for (std::size_t place = 0; place < ChannelShared::kExposed; ++place) {
    TicketWord& exposed = shared_->exposed[place];
    if (exposed.load(std::memory_order_relaxed) != 0) continue;
    shared_->claims[place].store(0, std::memory_order_relaxed);
    exposed.store(ticket, std::memory_order_relaxed);  // the record publishes both
    return ArrayOffer{reinterpret_cast<std::uintptr_t>(array), ticket, place};
  }
  return std::nullopt;
}

void RingChannel::withdraw(const control::GroupControl& control,
                           int reader,
                           std::size_t place) noexcept {
  shm::withdraw(shared_->exposed[place], [&] {
    return shared_->copying.load(std::memory_order_acquire) == place + 1 &&
           control.host().peer_memory.may_be_copying(control.host_rank(reader));
  });
}

std::optional<ExposedArray> RingChannel::array_of(int owner,
                                                  const ArrayOffer& offer) const noexcept {
  if (offer.place >= ChannelShared::kExposed || offer.ticket == 0) return std::nullopt;
  return ExposedArray{owner,
                      reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(offer.address)),
                      &shared_->exposed[offer.place],
                      offer.ticket};
}

int RingChannel::read(const control::GroupControl& control,
                      int owner,
                      const ArrayOffer& offer,
                      void* to,
                      std::size_t offset,
                      std::size_t bytes) noexcept {
  const auto array = array_of(owner, offer);
  if (!array) return EINVAL;
  return read_exposed(control, *array, shared_->copying, offer.place + 1, to, offset, bytes);
}

int RingChannel::write_to(const control::GroupControl& control,
                          int owner,
                          const ArrayOffer& offer,
                          const void* from,
                          std::size_t offset,
                          std::size_t bytes) noexcept {
  const auto array = array_of(owner, offer);
  if (!array) return EINVAL;
  return write_exposed(control, *array, shared_->copying, offer.place + 1, from, offset, bytes);
}

}  // namespace hocket::engines::shm
