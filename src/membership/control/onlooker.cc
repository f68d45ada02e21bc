#include "membership/control/onlooker.h"

#include "membership/control/group_layout.h"
#include "membership/control/host/layout.h"

namespace hocket::control {
namespace {

bool is_known(const engine::Signature& s) noexcept {
  return static_cast<int>(s.kind) < engine::kKindCount && static_cast<int>(s.dtype) < kDTypeCount &&
         static_cast<int>(s.op) < kReduceOpCount;
}

}  // namespace

Onlooker::Onlooker(std::span<const std::byte> segment) noexcept : segment_(segment) {
  const auto* header = at<HostHeader>(0);
  if (header == nullptr) return;
  constexpr std::uint64_t kName = ~std::uint64_t{0xff};  // all bits of the magic except the version
  const std::uint64_t magic = header->magic.load(std::memory_order_acquire);
  if (magic == 0 || (magic & kName) != (kMagic & kName)) return;
  known_ = Known::kOtherVersion;
  if (magic != kMagic) return;
  constexpr std::uint32_t kMost = 1 << 20;
  const std::uint32_t here = header->ranks;
  const std::uint32_t remote = header->remote;
  if (here == 0 || here > static_cast<std::uint32_t>(HostView::kMostRanks) || remote > kMost ||
      at<RankLine>(lines_offset(), here + remote) == nullptr) {
    return;
  }
  ranks_ = static_cast<int>(here);
  places_ = static_cast<int>(here + remote);
  stripe_bytes_ = header->stripe_bytes;
  known_ = Known::kYes;
}

const void* Onlooker::find(std::uint64_t offset,
                           std::size_t bytes,
                           std::size_t alignment,
                           std::size_t count) const noexcept {
  const std::size_t all = segment_.size();
  if (offset > all || offset % alignment != 0 || count > (all - offset) / bytes) return nullptr;
  return segment_.data() + offset;
}

SeenRank Onlooker::rank(int place) const noexcept {
  if (place < 0 || place >= places_) return {};
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const RankLine& line = at<RankLine>(lines_offset(), static_cast<std::size_t>(places_))[place];
  const std::int32_t awaits = line.awaits.load(kRelaxed);
  return {.state = line.state.load(std::memory_order_acquire),
          .world_rank = line.world_rank.load(kRelaxed),
          .pid = line.pid.load(kRelaxed),
          .thread = line.thread.load(kRelaxed),
          .start = line.start.load(kRelaxed),
          .pid_space = line.pid_space.load(kRelaxed),
          .host = line.host.load(kRelaxed),
          .awaits = awaits >= 0 && awaits < places_ ? awaits : -1};
}

std::uint64_t Onlooker::first_block(int place) const noexcept {
  return first_block_offset(
      {.ranks = ranks_, .remote = places_ - ranks_, .stripe_bytes = stripe_bytes_}, place);
}

int Onlooker::size_of_group(std::uint64_t block) const noexcept {
  const auto* header = at<GroupHeader>(block);
  if (header == nullptr) return 0;
  const std::uint32_t size = header->size;
  if (size == 0 || size > static_cast<std::uint32_t>(places_)) return 0;
  const auto* members = at<GroupMember>(block + sizeof(GroupHeader), size);
  return members == nullptr ? 0 : static_cast<int>(size);
}

// Returns the address of a group's block. It is not const, because functions of group_layout.h need
// this, but nothing is written.
std::byte* Onlooker::block_of(std::uint64_t block, int index) const noexcept {
  if (index < 0 || index >= size_of_group(block)) return nullptr;
  return const_cast<std::byte*>(segment_.data() + block);
}

SeenMember Onlooker::member(std::uint64_t block, int index) const noexcept {
  std::byte* const at = block_of(block, index);
  if (at == nullptr) return {};
  const GroupMember& member = member_at(at, index);
  const std::uint64_t finished = member.finished.load(std::memory_order_acquire);
  const std::int32_t place = member.place;
  return {.place = place >= 0 && place < places_ ? place : -1,
          .last = member.last.load(std::memory_order_acquire),
          .finished = finished >> 1,
          .finished_well = (finished & 1) != 0,
          .waits = !member.wait.text.empty()};
}

std::string Onlooker::wait(std::uint64_t block, int index) const {
  std::byte* const at = block_of(block, index);
  return at == nullptr ? std::string() : member_at(at, index).wait.read();
}

std::optional<Record> Onlooker::record(std::uint64_t block,
                                       int index,
                                       std::uint64_t sequence) const {
  std::byte* const at = block_of(block, index);
  if (at == nullptr || sequence == 0) return std::nullopt;
  auto record = member_at(at, index).records[sequence % kRecords].read(sequence);
  if (!record || !is_known(record->signature)) return std::nullopt;
  return record;
}

std::optional<Failure> Onlooker::failure(std::uint64_t block) const {
  std::byte* const at = block_of(block, 0);
  if (at == nullptr) return std::nullopt;
  const auto& header = *reinterpret_cast<const GroupHeader*>(at);
  if (header.failure.load(std::memory_order_acquire) != kFailureWritten) return std::nullopt;
  return header.what_failed();
}

}  // namespace hocket::control
