// Symmetric arrays. In host memory each rank's part lies in its stripe of the host's segment, which
// all ranks have mapped. So making an array is an agreement on offsets. GPUs' memory is mapped when
// the array is made.
#include "hocket/symmetric.h"

#include <fmt/format.h>

#include <algorithm>

#include "calls/call/membership.h"
#include "calls/device/calls.h"
#include "calls/world/allocation.h"
#include "calls/world/communicator_impl.h"
#include "calls/world/world.h"
#include "foundation/base/enumerator.h"

namespace hocket {
namespace symmetric {

// A resource: this rank's hold on the parts of all ranks. It is released with the last view.
class SymmetricBlock {
 public:
  virtual ~SymmetricBlock() = default;
  virtual ArrayView part(int rank) const = 0;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
};

namespace {

class OnHost final : public SymmetricBlock {
 public:
  OnHost(std::shared_ptr<world::WorldImpl> world, int rank, std::size_t count, DType dtype)
      : world_(std::move(world)), rank_(rank), count_(count), dtype_(dtype) {}
  OnHost(const OnHost&) = delete;
  OnHost& operator=(const OnHost&) = delete;
  ~OnHost() override {
    if (world_->forked()) return;
    for (const std::uint64_t offset : offsets_) world_->host().memory.release(offset);
  }
  // Sets the offsets of all ranks' parts, once they are agreed on.
  void set_offsets(std::vector<std::uint64_t> offsets) noexcept { offsets_ = std::move(offsets); }

  ArrayView part(int rank) const override {
    return {world_->host().memory.at(offsets_[static_cast<std::size_t>(rank)]), count_, dtype_};
  }
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return static_cast<int>(offsets_.size()); }

 private:
  std::shared_ptr<world::WorldImpl> world_;
  std::vector<std::uint64_t> offsets_;
  int rank_;
  std::size_t count_;
  DType dtype_;
};

class OnGpus final : public SymmetricBlock {
 public:
  OnGpus(std::shared_ptr<device::DeviceBlock> block, std::size_t count, DType dtype)
      : block_(std::move(block)), count_(count), dtype_(dtype) {}

  ArrayView part(int rank) const override {
    return {block_->reach(rank), count_, dtype_, MemoryKind::kCuda, block_->device(rank)};
  }
  int rank() const noexcept override { return block_->rank(); }
  int size() const noexcept override { return block_->size(); }

 private:
  std::shared_ptr<device::DeviceBlock> block_;
  std::size_t count_;
  DType dtype_;
};

}  // namespace
}  // namespace symmetric

SymmetricArray::SymmetricArray(std::shared_ptr<symmetric::SymmetricBlock> block) noexcept
    : block_(std::move(block)) {}

ArrayView SymmetricArray::local() const& noexcept {
  return block_ ? block_->part(block_->rank()) : ArrayView{};
}

ArrayView SymmetricArray::peer(int rank) const {
  if (!block_) throw InvalidArgument("this symmetric array has been freed");
  call::require_rank("peer", rank, block_->size());
  return block_->part(rank);
}

std::shared_ptr<void> SymmetricArray::owner() const noexcept { return block_; }

SymmetricMemory::SymmetricMemory(std::shared_ptr<world::CommunicatorImpl> impl) noexcept
    : impl_(std::move(impl)) {}

SymmetricMemory Communicator::symmetric() { return SymmetricMemory(impl_); }

namespace {

void require_one_host(world::CommunicatorImpl& impl, std::string_view what) {
  if (!impl.membership().spans()) return;
  impl.refuse_call(
      engine::Kind::kSymmetricAllocate,
      fmt::format("{} of one host, and this communicator has ranks on several; use that of "
                  "intra_node()",
                  what));
}

}  // namespace

SymmetricArray SymmetricMemory::empty(std::size_t count,
                                      DType dtype,
                                      const SymmetricOptions& options) {
  require_one_host(*impl_, "symmetric memory is");
  engine::Signature shown{.kind = engine::Kind::kSymmetricAllocate, .dtype = dtype, .count = count};
  if (size_of(dtype) == 0) {
    impl_->refuse_call(engine::Kind::kSymmetricAllocate, "dtype is none of hocket::DType");
  }
  if (count > call::kMostBytes / size_of(dtype)) {
    impl_->refuse_call(engine::Kind::kSymmetricAllocate,
                       fmt::format("{} elements are more than any memory holds", count));
  }
  impl_->before_call(shown.kind, [&] {
    base::require_enumerator(options.heap, SymmetricHeap::kNvshmem, "heap", "SymmetricHeap");
    base::require_enumerator(
        options.memory.value_or(MemoryKind::kHost), MemoryKind::kCuda, "memory", "MemoryKind");
  });
  const std::size_t bytes = std::max<std::size_t>(1, count * size_of(dtype));
  const bool of_nvshmem = options.heap == SymmetricHeap::kNvshmem;
  const bool on_gpus = impl_->has_device() || of_nvshmem;
  shown.memory = options.memory.value_or(on_gpus ? MemoryKind::kCuda : MemoryKind::kHost);
  if (of_nvshmem && shown.memory == MemoryKind::kHost) {
    impl_->refuse_call(engine::Kind::kSymmetricAllocate,
                       "NVSHMEM's heap lies in GPUs' memory, and memory is \"host\"");
  }
  world::Allocation own{.bytes = bytes};
  std::shared_ptr<symmetric::OnHost> block;
  impl_->before_call(shown.kind, [&] {
    own.what = fmt::format("{}[{}]", name_of(dtype), count);
    if (shown.memory == MemoryKind::kCuda) {
      own.what += fmt::format(" of communicator {}", impl_->membership().name);
    } else {
      own.holders = impl_->membership().host_ranks;
      block = std::make_shared<symmetric::OnHost>(impl_->world(), impl_->rank(), count, dtype);
    }
  });
  if (shown.memory == MemoryKind::kCuda) {
    if (of_nvshmem) shown.kind = engine::Kind::kNvshmemAllocate;
    const call::CallGuard guard(*impl_, shown.kind);
    impl_->require_usable();
    impl_->require_members(shown.kind);
    const auto allocate =
        of_nvshmem ? &device::DeviceMemory::allocate_from_nvshmem : &device::DeviceMemory::allocate;
    auto mapped =
        (impl_->devices().memory.*allocate)(bytes, shown, std::move(own.what), options.deadline);
    return SymmetricArray(std::make_shared<symmetric::OnGpus>(std::move(mapped), count, dtype));
  }
  block->set_offsets(world::allocate_together(*impl_, shown, own, options.deadline));
  return SymmetricArray(std::move(block));
}

namespace {

std::shared_ptr<device::DeviceBlock> block_of(world::CommunicatorImpl& impl, ConstArrayView array) {
  auto block = impl.world()->device_blocks().find(array.data());
  if (!block) {
    throw InvalidArgument(
        "array is not symmetric memory of a GPU: it wants one made by symmetric.empty with "
        "memory=\"cuda\", or a part of such");
  }
  return block;
}

}  // namespace

ArrayView SymmetricMemory::peer(ConstArrayView array, int rank) const {
  const auto block = block_of(*impl_, array);
  call::require_rank("peer", rank, impl_->size());
  const int member =
      block->member_of(impl_->membership().world_ranks[static_cast<std::size_t>(rank)]);
  if (member < 0) {
    throw InvalidArgument(fmt::format("rank {} has no part of {}", rank, block->name()));
  }
  return {block->reach(member) + *block->offset_of(array.data()),
          array.count(),
          array.dtype(),
          MemoryKind::kCuda,
          block->device(member)};
}

std::shared_ptr<void> SymmetricMemory::owner(ConstArrayView array) const {
  return block_of(*impl_, array);
}

void SymmetricMemory::free(ConstArrayView array, const CallOptions& options) {
  std::shared_ptr<device::DeviceBlock> block;
  std::byte none{};
  std::vector<std::byte> all;
  impl_->before_call(engine::Kind::kSymmetricFree, [&] {
    block = block_of(*impl_, array);
    all.resize(static_cast<std::size_t>(impl_->size()));
  });
  impl_->run_as(
      {.kind = engine::Kind::kSymmetricFree, .memory = MemoryKind::kCuda, .digest = block->id()},
      {.kind = engine::Kind::kAllGather,
       .in = {&none, 1, DType::kUInt8},
       .out = {all.data(), all.size(), DType::kUInt8},
       .deadline = options.deadline});
  impl_->world()->device_blocks().take_out(*block);
}

std::int32_t SymmetricMemory::nvshmem_team(const CallOptions& options) {
  require_one_host(*impl_, "a team of NVSHMEM is");
  const call::CallGuard guard(*impl_);
  impl_->require_usable();
  impl_->require_members();
  return impl_->devices().memory.nvshmem_team(options.deadline);
}

}  // namespace hocket
