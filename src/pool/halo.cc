#include "pool/halo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/dispatch.h"
#include "pool/checks.h"

namespace hocket::pool {
namespace {

using Mode = HaloOptions::Mode;

// The rows of a seam in arrays of one shape: `outer` strips of `bytes`, `stride` apart.
struct Seam {
  std::size_t outer, offset, stride, bytes;
};

Seam seam_at(const HaloShape& shape, std::size_t row, std::size_t overlap, DType dtype) {
  const std::size_t row_bytes = shape.inner * size_of(dtype);
  return {.outer = shape.outer,
          .offset = row * row_bytes,
          .stride = shape.rows * row_bytes,
          .bytes = overlap * row_bytes};
}

std::byte* strip(ArrayView array, const Seam& seam, std::size_t o) {
  return static_cast<std::byte*>(array.data()) + seam.offset + o * seam.stride;
}

// What a number is blended in.
template <typename T>
struct Blended {
  using Type = double;
};
template <typename T>
struct Blended<std::complex<T>> {
  using Type = std::complex<double>;
};

template <typename T>
T narrowed(const typename Blended<T>::Type& value) {
  if constexpr (std::is_same_v<typename Blended<T>::Type, double>) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(value);
    } else {
      return T(static_cast<float>(value));  // the small floats
    }
  } else {
    return T(value);
  }
}

template <typename T>
typename Blended<T>::Type widened(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else if constexpr (std::is_same_v<typename Blended<T>::Type, double>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return typename Blended<T>::Type(value);
  }
}

// How much of each side the rows of a seam get.
struct Ramp {
  double low, high;
};
Ramp ramp_at(std::size_t row, std::size_t overlap) {
  const double part = 1.0 / static_cast<double>(overlap + 1);
  const double k = static_cast<double>(row + 1);
  return {.low = 1.0 - k * part, .high = k * part};
}

// Both become the same: `low`'s first rows count most for the lower worker.
template <typename T>
void blend(T* low, T* high, std::size_t overlap, std::size_t inner) {
  for (std::size_t row = 0; row < overlap; ++row) {
    const Ramp ramp = ramp_at(row, overlap);
    for (std::size_t i = row * inner; i < (row + 1) * inner; ++i) {
      low[i] = high[i] = narrowed<T>(ramp.low * widened(low[i]) + ramp.high * widened(high[i]));
    }
  }
}

void mend(std::byte* low,
          std::byte* high,
          std::size_t overlap,
          const Seam& seam,
          DType dtype,
          Mode mode) {
  if (mode == Mode::kSwap) {
    std::swap_ranges(low, low + seam.bytes, high);
    return;
  }
  core::dispatch(dtype, [&]<typename T>() {
    blend(reinterpret_cast<T*>(low),
          reinterpret_cast<T*>(high),
          overlap,
          seam.bytes / sizeof(T) / overlap);
  });
}

void mend_on_host(ArrayView low, ArrayView high, std::size_t overlap, const Seam& seam, Mode mode) {
  for (std::size_t o = 0; o < seam.outer; ++o) {
    mend(strip(low, seam, o), strip(high, seam, o), overlap, seam, low.dtype(), mode);
  }
}

void swap_on_gpu(const Seat& seat, ArrayView low, ArrayView high, const Seam& seam) {
  const DeviceLane& lane = *seat.lane;
  const cuda::ScratchMemory kept(lane.device(), seam.bytes, lane.stream().handle());
  for (std::size_t o = 0; o < seam.outer; ++o) {
    lane.copy(kept.data(), strip(low, seam, o), seam.bytes);
    lane.copy(strip(low, seam, o), strip(high, seam, o), seam.bytes);
    lane.copy(strip(high, seam, o), kept.data(), seam.bytes);
  }
}

std::vector<std::byte> packed(ArrayView array, const Seam& seam) {
  std::vector<std::byte> rows(seam.outer * seam.bytes);
  for (std::size_t o = 0; o < seam.outer; ++o) {
    std::memcpy(rows.data() + o * seam.bytes, strip(array, seam, o), seam.bytes);
  }
  return rows;
}

// This process's side of a seam with a neighbour: what it sends and what it gets.
struct Border {
  int neighbour;
  ArrayView array;
  Seam seam;
  bool is_low;  // this process's worker is the lower one
  std::vector<std::byte> mine, theirs;
};

void exchange_across(Communicator& comm,
                     std::vector<Border>& borders,
                     std::size_t overlap,
                     Mode mode) {
  std::vector<Work> works;
  for (Border& border : borders) {
    border.mine = packed(border.array, border.seam);
    border.theirs.resize(border.mine.size());
  }
  for (Border& border : borders) {
    works.push_back(comm.recv_async(border.theirs, border.neighbour));
    works.push_back(comm.send_async(border.mine, border.neighbour));
  }
  for (Work& work : works) work.wait();
  for (Border& border : borders) {
    for (std::size_t o = 0; o < border.seam.outer; ++o) {
      std::byte* here = strip(border.array, border.seam, o);
      std::byte* there = border.theirs.data() + o * border.seam.bytes;
      mend(border.is_low ? here : there,
           border.is_low ? there : here,
           overlap,
           border.seam,
           border.array.dtype(),
           mode);
    }
  }
}

void check_rows(const char* name, std::size_t row, std::size_t overlap, const HaloShape& shape) {
  if (row <= shape.rows && overlap <= shape.rows - row) return;
  throw InvalidArgument(fmt::format(
      "{} is {} and overlap {}, and the arrays have {} rows", name, row, overlap, shape.rows));
}

void check(const Pool& pool,
           Out arrays,
           const HaloShape& shape,
           std::span<const std::size_t> seams,
           std::size_t overlap,
           const HaloOptions& options) {
  require_one_each(pool, arrays, "arrays");
  const std::size_t count = shape.outer * shape.rows * shape.inner;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    require_equal(
        arrays[i], ConstArrayView(nullptr, count, arrays[0].dtype()), fmt::format("arrays[{}]", i));
  }
  require_apart(arrays, "arrays");
  if (overlap < 1) throw InvalidArgument("overlap is 0, expected at least 1 row");
  if (seams.size() + 1 != arrays.size()) {
    throw InvalidArgument(fmt::format("seams has {} entries, and {} workers have {} seams",
                                      seams.size(),
                                      arrays.size(),
                                      arrays.size() - 1));
  }
  for (const std::size_t seam : seams) check_rows("a seam", seam, overlap, shape);
  if (pool.has_gpus() && options.mode == Mode::kBlend) {
    throw InvalidArgument("blend is for arrays in host memory; on GPUs swap");
  }
  if (options.across == nullptr) return;
  if (pool.has_gpus()) throw InvalidArgument("across is for arrays in host memory");
  if (options.across->rank() > 0) {
    check_rows("previous_seam", options.previous_seam, overlap, shape);
  }
  if (options.across->rank() + 1 < options.across->size()) {
    check_rows("next_seam", options.next_seam, overlap, shape);
  }
}

bool are_apart(std::span<const std::size_t> seams, std::size_t overlap) {
  std::vector<std::size_t> sorted(seams.begin(), seams.end());
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i] - sorted[i - 1] < overlap) return false;
  }
  return true;
}

}  // namespace

void exchange_halo(Pool& pool,
                   Out arrays,
                   const HaloShape& shape,
                   std::span<const std::size_t> seams,
                   std::size_t overlap,
                   const HaloOptions& options) {
  try {
    check(pool, arrays, shape, seams, overlap, options);
    pool.require_open();
  } catch (const InvalidArgument& error) {
    if (options.across != nullptr) options.across->refuse(error.what());
    throw;
  }
  // Neighbours wait for messages, which nobody refuses: so that all go on, or none.
  if (options.across != nullptr) options.across->barrier();
  const DType dtype = arrays[0].dtype();
  const auto do_seam = [&](const Seat& seat, std::size_t i) {
    const Seam seam = seam_at(shape, seams[i], overlap, dtype);
    if (seat.lane != nullptr) {
      swap_on_gpu(seat, arrays[i], arrays[i + 1], seam);
    } else {
      mend_on_host(arrays[i], arrays[i + 1], overlap, seam, options.mode);
    }
  };
  const bool apart = are_apart(seams, overlap);
  if (!seams.empty()) {
    pool.run(
        [&](Seat& seat) {
          const auto index = static_cast<std::size_t>(seat.index);
          if (apart) {
            if (index < seams.size()) do_seam(seat, index);
          } else if (index == 0) {
            for (std::size_t i = 0; i < seams.size(); ++i) do_seam(seat, i);
          }
        },
        options.streams);
  }
  if (options.across == nullptr) return;
  std::vector<Border> borders;
  const int rank = options.across->rank();
  if (rank > 0) {
    borders.push_back({.neighbour = rank - 1,
                       .array = arrays.front(),
                       .seam = seam_at(shape, options.previous_seam, overlap, dtype),
                       .is_low = false});
  }
  if (rank + 1 < options.across->size()) {
    borders.push_back({.neighbour = rank + 1,
                       .array = arrays.back(),
                       .seam = seam_at(shape, options.next_seam, overlap, dtype),
                       .is_low = true});
  }
  exchange_across(*options.across, borders, overlap, options.mode);
}

}  // namespace hocket::pool
