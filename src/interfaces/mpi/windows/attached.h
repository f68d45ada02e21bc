// The list of memory that a rank has attached to a dynamic window. It lies in words that all ranks
// have mapped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hocket::mpi {

// A view of the list of one rank. That rank changes it, one thread at a time; any rank reads it.
class AttachedMemory {
 public:
  static constexpr std::uint32_t kMost = 4096;  // pieces of memory

  static std::size_t bytes() noexcept { return sizeof(List); }
  explicit AttachedMemory(std::byte* words) noexcept : list_(reinterpret_cast<List*>(words)) {}

  enum class Added { kDone, kOverlaps, kFull };
  Added add(std::uintptr_t base, std::uint64_t bytes) const noexcept;
  // Returns false if no piece begins there.
  bool remove(std::uintptr_t base) const noexcept;
  // Returns whether all bytes from `begin` to `end` are attached, in one piece or in adjacent ones.
  bool holds(std::uintptr_t begin, std::uintptr_t end) const noexcept;

 private:
  struct Piece {
    std::atomic<std::uint64_t> base;
    std::atomic<std::uint64_t> end;  // plus one; 0: no piece
  };
  struct alignas(64) List {
    std::atomic<std::uint32_t> used;  // entries in use are below this index
    Piece pieces[kMost];
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  std::uintptr_t end_of_piece(std::uintptr_t place) const noexcept;

  List* list_;
};

}  // namespace hocket::mpi
