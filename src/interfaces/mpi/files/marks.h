// The bytes of a part of a file that are present.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "interfaces/mpi/types/runs.h"

namespace hocket::mpi {

// A run of bytes within such a part.
struct Piece {
  std::uint32_t offset = 0, length = 0;
};

// A bit for each byte. A value.
class Marks {
 public:
  // `bytes` is a multiple of 64.
  explicit Marks(std::int64_t bytes) : words_(static_cast<std::size_t>(bytes / 64)) {}

  void add(const Piece& piece) noexcept {
    const std::size_t last = piece.offset + std::size_t{piece.length} - 1;
    std::uint64_t mask = kAll << piece.offset % 64;
    for (std::size_t at = piece.offset / 64; at < last / 64; ++at, mask = kAll) words_[at] |= mask;
    words_[last / 64] |= mask & kAll >> (63 - last % 64);
  }
  // Calls `run` with the offset and the length of each run, until `run` returns false. Runs with
  // gaps of at most `gap` bytes between them are one.
  void each_run(std::int64_t gap, const Run& run) const {
    for (std::int64_t begin = find(0, true); begin < size();) {
      std::int64_t end = find(begin, false), next = find(end, true);
      while (next < size() && next - end <= gap) {
        end = find(next, false);
        next = find(end, true);
      }
      if (!run(begin, end - begin)) return;
      begin = next;
    }
  }
  void clear() noexcept { std::fill(words_.begin(), words_.end(), 0); }

 private:
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(words_.size() * 64); }
  // Returns the first byte from `from` on that is present or absent, or the size.
  std::int64_t find(std::int64_t from, bool is_present) const noexcept {
    std::uint64_t mask = kAll << from % 64;
    for (auto at = static_cast<std::size_t>(from / 64); at < words_.size(); ++at, mask = kAll) {
      const std::uint64_t found = (is_present ? words_[at] : ~words_[at]) & mask;
      if (found != 0) return static_cast<std::int64_t>(at * 64) + std::countr_zero(found);
    }
    return size();
  }

  std::vector<std::uint64_t> words_;
};

}  // namespace hocket::mpi
