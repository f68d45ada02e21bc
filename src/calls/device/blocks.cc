#include "calls/device/blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "foundation/base/log.h"
#include "foundation/cuda/idle.h"
#include "foundation/cuda/memory.h"
#include "hocket/error.h"

namespace hocket::device {

DeviceBlock::DeviceBlock(std::shared_ptr<const cuda::DeviceContext> device, DeviceBlockParts parts)
    : device_(std::move(device)), parts_(std::move(parts)) {
  for (std::byte* piece : parts_.pieces) {
    devices_.push_back(piece == nullptr ? -1 : cuda::whereabouts(device_->driver(), piece).device);
  }
}

DeviceBlock::~DeviceBlock() {
  if (epoch_) epoch_->fetch_add(1, std::memory_order_acq_rel);
  // Waits for the GPU's work, because it may access the pieces.
  if (!cuda::release_when_idle(device_, std::move(parts_.memory), base::Deadline::in(patience_))) {
    base::log(
        base::LogLevel::kWarning,
        fmt::format("symmetric memory {} is given up, but work on GPU {} has not ended within "
                    "{}; the memory goes when it does",
                    parts_.name,
                    device_->ordinal(),
                    base::in_seconds(patience_)));
  }
}

std::byte* DeviceBlock::piece(int rank) const noexcept {
  return parts_.pieces[static_cast<std::size_t>(rank)];
}

std::byte* DeviceBlock::reach(int rank) const {
  if (std::byte* address = piece(rank)) return address;
  throw InvalidArgument(fmt::format(
      "rank {}'s part of {} cannot be read and written from rank {}'s GPU by address: no way "
      "between the two maps it; NVSHMEM's put and get reach it from a kernel",
      rank,
      parts_.name,
      parts_.rank));
}

std::byte* DeviceBlock::piece_of_world(int world_rank) const noexcept {
  const int member = member_of(world_rank);
  return member < 0 ? nullptr : piece(member);
}

int DeviceBlock::member_of(int world_rank) const noexcept {
  const auto found = std::ranges::find(parts_.world_ranks, world_rank);
  return found == parts_.world_ranks.end() ? -1
                                           : static_cast<int>(found - parts_.world_ranks.begin());
}

std::optional<std::size_t> DeviceBlock::offset_of(const void* address) const noexcept {
  const auto* begin = piece(parts_.rank);
  const auto* at = static_cast<const std::byte*>(address);
  if (at < begin || at >= begin + parts_.bytes) return std::nullopt;
  return static_cast<std::size_t>(at - begin);
}

void DeviceBlocks::add(const std::shared_ptr<DeviceBlock>& block) {
  const std::lock_guard lock(mutex_);
  std::erase_if(blocks_, [](const auto& weak) { return weak.expired(); });
  blocks_.push_back(block);
  block->advance_at_end(epoch_);
  epoch_->fetch_add(1, std::memory_order_acq_rel);
}

std::shared_ptr<DeviceBlock> DeviceBlocks::find(const void* address) const {
  if (address == nullptr || epoch() == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  for (const auto& weak : blocks_) {
    auto block = weak.lock();
    if (block && block->offset_of(address)) return block;
  }
  return nullptr;
}

bool DeviceBlocks::take_out(const DeviceBlock& block) {
  const std::lock_guard lock(mutex_);
  const auto taken =
      std::erase_if(blocks_, [&](const auto& weak) { return weak.lock().get() == &block; });
  epoch_->fetch_add(1, std::memory_order_acq_rel);
  return taken > 0;
}

std::vector<std::string> DeviceBlocks::left() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& weak : blocks_) {
    if (const auto block = weak.lock()) names.push_back(block->name());
  }
  return names;
}

}  // namespace hocket::device
