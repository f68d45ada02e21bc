// Symmetric memory of GPUs: one piece on every rank's GPU, mapped by all ranks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "foundation/cuda/context.h"
#include "hocket/types.h"

namespace hocket::device {

// The data that a DeviceBlock is made of. A value.
struct DeviceBlockParts {
  std::uint64_t id = 0;
  std::string name;
  std::vector<int> world_ranks;  // world rank of each member
  int rank = 0;                  // this rank's number among the members
  std::size_t bytes = 0;         // size of one piece
  // Addresses of the pieces in this process, by member. Null: not reachable from this rank.
  std::vector<std::byte*> pieces;
  bool direct = true;            // all members can reach all pieces
  std::shared_ptr<void> memory;  // owner of the mappings
};

// A resource: this rank's piece and its views of the other pieces. Any thread may use it. The
// destructor waits for this GPU's work, for at most the time that `wait_at_end` sets. If the work
// still runs then, the views stay mapped until it has ended. The lifetime of a peer's piece depends
// on its owner.
class DeviceBlock {
 public:
  DeviceBlock(std::shared_ptr<const cuda::DeviceContext> device, DeviceBlockParts parts);
  ~DeviceBlock();
  void wait_at_end(Duration patience) noexcept { patience_ = patience; }
  // A counter that the destructor advances.
  using Epoch = std::atomic<std::uint64_t>;
  void advance_at_end(std::shared_ptr<Epoch> epoch) noexcept { epoch_ = std::move(epoch); }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;

  // Returns the block's number. It is equal on all ranks. It differs from the numbers of all other
  // blocks of the job that share a rank with this block.
  std::uint64_t id() const noexcept { return parts_.id; }
  const std::string& name() const noexcept { return parts_.name; }
  int rank() const noexcept { return parts_.rank; }
  int size() const noexcept { return static_cast<int>(parts_.pieces.size()); }
  // Returns whether peers' kernels may write directly to all pieces. The answer is equal on all
  // ranks.
  bool is_direct() const noexcept { return parts_.direct; }
  // Returns the address of a piece. Null if it is not reachable from this rank.
  std::byte* piece(int rank) const noexcept;
  // Returns the address of a piece. Throws InvalidArgument, which names the rank, if it is not
  // reachable.
  std::byte* reach(int rank) const;
  // Returns the number in this process of the GPU that holds a rank's piece; -1: not reachable.
  int device(int rank) const noexcept { return devices_[static_cast<std::size_t>(rank)]; }
  // Returns the piece of a rank of the world. Null if that rank has no piece that is reachable.
  std::byte* piece_of_world(int world_rank) const noexcept;
  // Returns the offset of an address in this rank's own piece. Absent if it lies elsewhere.
  std::optional<std::size_t> offset_of(const void* address) const noexcept;
  // Returns the member number of a world rank, or -1.
  int member_of(int world_rank) const noexcept;

 private:
  std::shared_ptr<const cuda::DeviceContext> device_;
  DeviceBlockParts parts_;
  std::vector<int> devices_;
  Duration patience_ = std::chrono::seconds(300);
  std::shared_ptr<Epoch> epoch_;
};

// The symmetric memory of one world on GPUs. Any thread may use it.
class DeviceBlocks {
 public:
  void add(const std::shared_ptr<DeviceBlock>& block);
  // Returns the block that contains an address of this rank's memory, or null.
  std::shared_ptr<DeviceBlock> find(const void* address) const;
  // Returns a number that changes when a block is added or removed. Earlier results of `find` may
  // then be invalid.
  std::uint64_t epoch() const noexcept { return epoch_->load(std::memory_order_acquire); }
  // Removes a block, so that `find` does not return it. Views of it may still live. Returns false
  // if it was not there.
  bool take_out(const DeviceBlock& block);
  // Returns the names of the blocks that live and were not removed.
  std::vector<std::string> left() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<DeviceBlock>> blocks_;
  std::shared_ptr<DeviceBlock::Epoch> epoch_ = std::make_shared<DeviceBlock::Epoch>(0);
};

}  // namespace hocket::device
