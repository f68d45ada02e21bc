// Symmetric memory of GPUs: one piece on every rank's, mapped by all of them.
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

// What a block is made of. A value.
struct DeviceBlockParts {
  std::uint64_t id = 0;
  std::string name;
  std::vector<int> world_ranks;  // of the members
  int rank = 0;                  // this rank's number among them
  std::size_t bytes = 0;         // of a piece
  // By member, as mapped here; null: not reached from here.
  std::vector<std::byte*> pieces;
  bool direct = true;            // all members reach all pieces
  std::shared_ptr<void> memory;  // what holds them
};

// A resource: this rank's piece and its views of the others'. Any thread. Its end waits for this
// GPU's work as long as `wait_at_end` says; where that goes on, the views stay until it has ended.
// What holds the pieces says how long they live.
class DeviceBlock {
 public:
  DeviceBlock(std::shared_ptr<const cuda::DeviceContext> device, DeviceBlockParts parts);
  ~DeviceBlock();
  void wait_at_end(Duration patience) noexcept { patience_ = patience; }
  // What is advanced at the end.
  using Epoch = std::atomic<std::uint64_t>;
  void advance_at_end(std::shared_ptr<Epoch> epoch) noexcept { epoch_ = std::move(epoch); }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;

  // The same on all ranks, and no other's of the job that shares a rank with it.
  std::uint64_t id() const noexcept { return parts_.id; }
  const std::string& name() const noexcept { return parts_.name; }
  int rank() const noexcept { return parts_.rank; }
  int size() const noexcept { return static_cast<int>(parts_.pieces.size()); }
  // Whether peers' kernels may write straight to all pieces. The same on all ranks.
  bool is_direct() const noexcept { return parts_.direct; }
  // Null where it is not reached from here.
  std::byte* piece(int rank) const noexcept;
  // The same; throws InvalidArgument, which names the rank, where it is not.
  std::byte* reach(int rank) const;
  // The GPU whose memory that is, by this process's numbers.
  int device(int rank) const noexcept { return devices_[static_cast<std::size_t>(rank)]; }
  // That of a rank of the world; null where it has none.
  std::byte* piece_of_world(int world_rank) const noexcept;
  // Where an address lies in this rank's own piece; absent: elsewhere.
  std::optional<std::size_t> offset_of(const void* address) const noexcept;
  // The member whose piece this is of a rank of the world; -1: none.
  int member_of(int world_rank) const noexcept;

 private:
  std::shared_ptr<const cuda::DeviceContext> device_;
  DeviceBlockParts parts_;
  std::vector<int> devices_;
  Duration patience_ = std::chrono::seconds(300);
  std::shared_ptr<Epoch> epoch_;
};

// The blocks of a process's world. Any thread.
class DeviceBlocks {
 public:
  void add(const std::shared_ptr<DeviceBlock>& block);
  // The block that an address of this rank's memory lies in, or null.
  std::shared_ptr<DeviceBlock> find(const void* address) const;
  // Differs once a block has come or gone: what was found before may hold no more.
  std::uint64_t epoch() const noexcept { return epoch_->load(std::memory_order_acquire); }
  // No longer found by its address, though views of it may live on. False: it was not there.
  bool take_out(const DeviceBlock& block);
  // Names of those that live and were not taken out.
  std::vector<std::string> left() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<DeviceBlock>> blocks_;
  std::shared_ptr<DeviceBlock::Epoch> epoch_ = std::make_shared<DeviceBlock::Epoch>(0);
};

}  // namespace hocket::device
