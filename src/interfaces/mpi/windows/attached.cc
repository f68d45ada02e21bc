#include "interfaces/mpi/windows/attached.h"

#include <algorithm>

namespace hocket::mpi {

AttachedMemory::Added AttachedMemory::add(std::uintptr_t base, std::uint64_t bytes) const noexcept {
  const std::uint32_t used = list_->used.load(std::memory_order_relaxed);
  std::uint32_t place = used;
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint64_t end = list_->pieces[i].end.load(std::memory_order_relaxed);
    if (end == 0) {
      place = std::min(place, i);
    } else if (list_->pieces[i].base.load(std::memory_order_relaxed) < base + bytes &&
               base < end - 1) {
      return Added::kOverlaps;
    }
  }
  if (place == kMost) return Added::kFull;
  Piece& piece = list_->pieces[place];
  piece.base.store(base, std::memory_order_relaxed);
  piece.end.store(base + bytes + 1, std::memory_order_release);  // pairs with `holds`
  if (place == used) list_->used.store(used + 1, std::memory_order_release);
  return Added::kDone;
}

bool AttachedMemory::remove(std::uintptr_t base) const noexcept {
  const std::uint32_t used = list_->used.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < used; ++i) {
    Piece& piece = list_->pieces[i];
    if (piece.end.load(std::memory_order_relaxed) == 0) continue;
    if (piece.base.load(std::memory_order_relaxed) != base) continue;
    piece.end.store(0, std::memory_order_release);
    return true;
  }
  return false;
}

bool AttachedMemory::holds(std::uintptr_t begin, std::uintptr_t end) const noexcept {
  for (;;) {
    const std::uintptr_t behind = end_of_piece(begin);
    if (behind >= end) return behind != 0;
    if (behind <= begin) return false;
    begin = behind;
  }
}

// Returns the end of a piece that has the byte at `place`, else of a piece that ends there. 0:
// none.
std::uintptr_t AttachedMemory::end_of_piece(std::uintptr_t place) const noexcept {
  const std::uint32_t used = std::min(list_->used.load(std::memory_order_acquire), kMost);
  std::uintptr_t found = 0;
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint64_t end = list_->pieces[i].end.load(std::memory_order_acquire);
    if (end <= place) continue;
    if (list_->pieces[i].base.load(std::memory_order_relaxed) > place) continue;
    found = std::max<std::uintptr_t>(found, end - 1);
  }
  return found;
}

}  // namespace hocket::mpi
