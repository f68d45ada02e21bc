// Boxes of elements as they lie in memory.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "foundation/core/reduce.h"
#include "hocket/distribution.h"

namespace hocket::fft {

inline constexpr std::size_t kMostAxes = 8;

// A box and how far apart neighbours along each axis lie, in elements. The box's first element is
// at 0. A value.
struct Lay {
  Box box;
  Extents strides;

  // In C order, without gaps.
  static Lay packed(const Box& box);
  // With gaps that keep strides away from powers of two, which caches take badly.
  static Lay padded(const Box& box, std::size_t element);

  std::size_t offset(const Extents& index) const noexcept;
  // Whether neighbours along one of the axes lie so far apart that they meet in few lines of the
  // caches.
  bool is_awkward(const std::vector<std::size_t>& axes, std::size_t element) const noexcept;
  // Elements from the first to the last, gaps included.
  std::size_t span() const noexcept;
};

// Copies what two lays share. Made once, run many times. A value.
class Copy {
 public:
  Copy() = default;
  // `part` lies within both.
  Copy(const Box& part, const Lay& from, const Lay& to, std::size_t element);
  // From and to where the lays begin. Stores past the caches are fenced before the return.
  void operator()(const std::byte* from,
                  std::byte* to,
                  core::Stores stores = core::Stores::kCached) const noexcept;

  // As it is to be made elsewhere: runs of so many bytes, the first at `from` and `to`, and loops
  // around them, the outermost first. All zero: nothing.
  struct Side {
    std::size_t sides, from, to;  // how many, and bytes from one to the next
  };
  std::size_t from() const noexcept { return from_; }
  std::size_t to() const noexcept { return to_; }
  std::size_t run() const noexcept { return run_; }
  std::span<const Side> loops() const noexcept { return {loop_.data(), loops_}; }

 private:
  // Calls `copy(to, from, bytes)` for each run.
  template <typename F>
  void each(const std::byte* from, std::byte* to, F&& copy) const noexcept;

  std::size_t from_ = 0, to_ = 0, run_ = 0;  // bytes
  std::size_t loops_ = 0;
  std::array<Side, kMostAxes> loop_{};
};

// Multiplies the elements of `part`, which lies in `lay` at `data`, by `factor`; each is so many
// reals. T is float or double.
template <typename T>
void scale(T* data, std::size_t reals, const Lay& lay, const Box& part, T factor);

}  // namespace hocket::fft
