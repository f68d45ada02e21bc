// Allocates memory that ranks of a host share. Each rank allocates from its own stripe of the
// segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "foundation/os/segment.h"
#include "membership/control/host/doorbells.h"
#include "membership/control/host/liveness.h"
#include "membership/control/host/view.h"

namespace hocket::control {

// One rank's access to the segment's memory. A resource: the mapping, and the bookkeeping of the
// rank's own stripe, which is in private memory. Any thread. Offsets and sizes are in bytes.
class HostMemory : public HostView {
 public:
  HostMemory(const HostView& view,
             std::shared_ptr<os::Segment> segment,
             const HostShape& shape,
             Doorbells& doorbells,
             Liveness& liveness);
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  std::byte* at(std::uint64_t offset) const noexcept { return segment_->data() + offset; }
  // Returns the address of an offset that a peer wrote. Throws SystemError if `bytes` bytes from
  // there are not in the segment.
  std::byte* at(std::uint64_t offset, std::size_t bytes) const;
  std::span<const std::byte> whole() const noexcept { return {segment_->data(), segment_->size()}; }
  // Returns whether an address is in the segment. `offset_of` then returns its offset.
  bool contains(const void* address) const noexcept {
    const auto* at = static_cast<const std::byte*>(address);
    return at >= segment_->data() && at < segment_->data() + segment_->size();
  }
  std::uint64_t offset_of(const void* address) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - segment_->data());
  }

  // The holder that stands for the network.
  static constexpr int kNetwork = -1;
  // Allocates zeroed memory from this rank's stripe, and returns its offset. `holders` hold it:
  // ranks of this host, or kNetwork. If the stripe is full, waits up to 5 s for memory that dead
  // ranks still hold. Throws SystemError if there is none.
  std::uint64_t allocate(std::size_t bytes, std::span<const int> holders);
  // Releases this rank's hold on a block. When no holder is left, the block's owner reuses the
  // memory at one of its next allocations. The hold of a dead rank counts as released once its
  // process has ended.
  void release(std::uint64_t offset) noexcept { release(offset, self_); }
  void release(std::uint64_t offset, int holder) noexcept;
  // Releases the holds of all ranks of this host, for a group that no rank has joined.
  void withdraw(std::uint64_t offset) noexcept;
  // Returns whether some rank still holds the block.
  bool is_held(std::uint64_t offset) const noexcept;
  // Returns the offset of the first allocation of the rank at `place`.
  std::uint64_t first_block(int place) const noexcept;

 private:
  struct Free {
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  void collect();
  bool is_gone(int rank) const noexcept;
  bool awaits_the_dead() const noexcept;
  template <typename Gone>
  bool is_held(std::uint64_t offset, const Gone& gone) const noexcept;
  std::optional<std::uint64_t> take(std::size_t bytes);

  const std::shared_ptr<os::Segment> segment_;
  Doorbells& doorbells_;
  Liveness& liveness_;
  const HostShape shape_;

  std::mutex books_;                 // guards the members below
  std::vector<Free> free_;           // sorted by offset; neighbours are merged
  std::vector<std::uint64_t> live_;  // allocated blocks
  std::size_t collect_at_ = 64;      // with so many allocated blocks, look for released ones
};

}  // namespace hocket::control
