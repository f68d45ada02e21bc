#include "engines/shm/shm_group.h"

namespace hocket::engines::shm {
namespace {

// Alignment of the chunks in bytes. It does not depend on the size of the kernel's pages.
constexpr std::size_t kChunksAt = 4096;

std::size_t round_up(std::size_t bytes) { return (bytes + kChunksAt - 1) / kChunksAt * kChunksAt; }
std::size_t slots_offset(std::size_t size) { return sizeof(RankWords) * size; }
std::size_t chunks_offset(std::size_t size, bool has_seconds) {
  return round_up(slots_offset(size) + sizeof(RankSlots) * (has_seconds ? 2 : 1) * size);
}

}  // namespace

std::size_t ShmGroup::bytes(int size, bool has_seconds) {
  const auto n = static_cast<std::size_t>(size);
  return chunks_offset(n, has_seconds) + 2 * kChunks * chunk_room(size) * n;
}

// `memory` is zero in a new group, which is the initial value of all words.
ShmGroup::ShmGroup(control::GroupControl& control,
                   engine::Consistency& consistency,
                   std::byte* memory,
                   const engine::GroupFacts& facts,
                   bool has_seconds)
    : control_(control),
      consistency_(consistency),
      rank_(facts.rank),
      size_(facts.size),
      spins_(control.host().processors.may_spin()),
      words_(reinterpret_cast<RankWords*>(memory)),
      slots_(reinterpret_cast<RankSlots*>(memory +
                                          slots_offset(static_cast<std::size_t>(facts.size)))),
      chunks_(memory + chunks_offset(static_cast<std::size_t>(facts.size), has_seconds)),
      chunk_room_(chunk_room(facts.size)),
      sources_(static_cast<std::size_t>(facts.size)),
      outs_(static_cast<std::size_t>(facts.size)),
      for_one_(Readers::kOne),
      for_several_(facts.size > 2 ? Readers::kSeveral : Readers::kOne) {
  for (int member = 0; member < size_; ++member) {
    is_crowded_ = is_crowded_ || !control_.may_spin(member);
  }
}

void ShmGroup::end_exposing() const noexcept {
  RankWords& own = words_[rank_];
  if (own.exposed.load(std::memory_order_relaxed) == 0) return;
  const auto is_copying = [&](int peer) {
    return words_[peer].copying.load(std::memory_order_acquire) == mark_of(rank_) &&
           control_.host().peer_memory.may_be_copying(control_.host_rank(peer));
  };
  withdraw(own.exposed, [&] {
    for (int peer = 0; peer < size_; ++peer) {
      if (is_copying(peer)) return true;
    }
    return false;
  });
}

}  // namespace hocket::engines::shm
