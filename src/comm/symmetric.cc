// Symmetric arrays: each rank's part lies in its own stripe of the host's segment, which everybody
// has mapped already; making one is agreeing on offsets.
#include "hocket/symmetric.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/allocation.h"
#include "comm/communicator_impl.h"
#include "comm/world.h"

namespace hocket {
namespace symmetric {

// A resource: this rank's hold on the parts of all ranks. Released when the last view dies.
class Block {
 public:
  Block(std::shared_ptr<comm::WorldImpl> world,
        std::vector<std::uint64_t> offsets,
        int rank,
        std::size_t count,
        DType dtype)
      : world_(std::move(world)),
        offsets_(std::move(offsets)),
        rank_(rank),
        count_(count),
        dtype_(dtype) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (world_->forked()) return;
    for (const std::uint64_t offset : offsets_) world_->host().release(offset);
  }

  ArrayView part(int rank) const {
    return {world_->host().at(offsets_[static_cast<std::size_t>(rank)]), count_, dtype_};
  }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(offsets_.size()); }

 private:
  std::shared_ptr<comm::WorldImpl> world_;
  std::vector<std::uint64_t> offsets_;
  int rank_;
  std::size_t count_;
  DType dtype_;
};

}  // namespace symmetric

SymmetricArray::SymmetricArray(std::shared_ptr<symmetric::Block> block) noexcept
    : block_(std::move(block)) {}

ArrayView SymmetricArray::local() const noexcept {
  return block_ ? block_->part(block_->rank()) : ArrayView{};
}

ArrayView SymmetricArray::peer(int rank) const {
  if (!block_) throw InvalidArgument("this symmetric array has been freed");
  if (rank < 0 || rank >= block_->size()) {
    throw InvalidArgument(
        fmt::format("peer is {}, expected a rank from 0 to {}", rank, block_->size() - 1));
  }
  return block_->part(rank);
}

std::shared_ptr<void> SymmetricArray::owner() const noexcept { return block_; }

SymmetricMemory::SymmetricMemory(std::shared_ptr<comm::CommunicatorImpl> impl) noexcept
    : impl_(std::move(impl)) {}

SymmetricMemory Communicator::symmetric() { return SymmetricMemory(impl_); }

SymmetricArray SymmetricMemory::empty(std::size_t count, DType dtype, const CallOptions& options) {
  auto offsets = comm::allocate_together(
      *impl_,
      {.kind = engine::Kind::kSymmetricAllocate, .dtype = dtype, .count = count},
      {.bytes = std::max<std::size_t>(1, count * size_of(dtype)),
       .holders = impl_->size(),
       .what = fmt::format("{} x {}", count, name_of(dtype))},
      options.deadline);
  return SymmetricArray(std::make_shared<symmetric::Block>(
      impl_->world(), std::move(offsets), impl_->rank(), count, dtype));
}

}  // namespace hocket
