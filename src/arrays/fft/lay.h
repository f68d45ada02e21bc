// Layouts of boxes of elements in memory.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "foundation/core/reduce.h"
#include "hocket/distribution.h"

namespace hocket::fft {

inline constexpr std::size_t kMostAxes = 8;

// A box and its strides, in elements. The box's first element is at 0. A value.
struct Lay {
  Box box;
  Extents strides;

  // Returns the layout in C order, without gaps.
  static Lay packed(const Box& box);
  // Returns a layout with gaps, so that no stride is a multiple of a large power of two. Such
  // strides map to few cache sets.
  static Lay padded(const Box& box, std::size_t element);

  std::size_t offset(const Extents& index) const noexcept;
  // True if the stride of one of the axes is so large that neighbours along it map to few cache
  // lines.
  bool is_awkward(const std::vector<std::size_t>& axes, std::size_t element) const noexcept;
  // Returns the number of elements from the first to the last, gaps included.
  std::size_t span() const noexcept;
};

// Copies the elements that two layouts share. Made once, run many times. A value.
class Copy {
 public:
  Copy() = default;
  // `part` lies within both layouts.
  Copy(const Box& part, const Lay& from, const Lay& to, std::size_t element);
  // `from` and `to` are the starts of the layouts. Stores past the caches are fenced before the
  // return.
  void operator()(const std::byte* from,
                  std::byte* to,
                  core::Stores stores = core::Stores::kCached) const noexcept;

  // Return the description of the copy, for code that makes it by other means, such as a GPU's
  // kernel. It consists of runs of `run` bytes, the first at the offsets `from` and `to`. `loops`
  // surround the runs, outermost first. If `run` is 0, nothing is copied.
  struct Side {
    std::size_t sides, from, to;  // iterations, and bytes from one to the next
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

// Multiplies the elements of `part`, which lies in `lay` at `data`, by `factor`. Each element has
// `reals` real numbers. T is float or double.
template <typename T>
void scale(T* data, std::size_t reals, const Lay& lay, const Box& part, T factor);

}  // namespace hocket::fft
