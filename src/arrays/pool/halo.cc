#include "arrays/pool/halo.h"

#include <fmt/format.h>

#include <algorithm>

#include "arrays/pool/checks.h"
#include "arrays/pool/seam.h"

namespace hocket::pool {
namespace {

using Mode = HaloOptions::Mode;

void mend_on_host(ArrayView low, ArrayView high, std::size_t overlap, const Seam& seam, Mode mode) {
  for (std::size_t o = 0; o < seam.outer; ++o) {
    mend(seam.strip(low, o), seam.strip(high, o), seam.bytes, overlap, low.dtype(), mode);
  }
}

void swap_on_gpu(const WorkerState& state, ArrayView low, ArrayView high, const Seam& seam) {
  const DeviceLane& lane = *state.lane;
  const cuda::ScratchMemory kept(lane.device(), seam.bytes, lane.stream().handle());
  for (std::size_t o = 0; o < seam.outer; ++o) {
    lane.copy(kept.data(), seam.strip(low, o), seam.bytes);
    lane.copy(seam.strip(low, o), seam.strip(high, o), seam.bytes);
    lane.copy(seam.strip(high, o), kept.data(), seam.bytes);
  }
}

void mend_rows(
    Rows& low, Rows& high, const Seam& seam, std::size_t overlap, DType dtype, Mode mode) {
  for (std::size_t o = 0; o < seam.outer; ++o) {
    mend(low.data() + o * seam.bytes,
         high.data() + o * seam.bytes,
         seam.bytes,
         overlap,
         dtype,
         mode);
  }
}

void blend_by_host(const WorkerState& state,
                   ArrayView low,
                   ArrayView high,
                   std::size_t overlap,
                   const Seam& seam) {
  Rows lower = take(&state, low, seam);
  Rows higher = take(&state, high, seam);
  mend_rows(lower, higher, seam, overlap, low.dtype(), Mode::kBlend);
  put(&state, low, seam, lower);
  put(&state, high, seam, higher);
}

// This process's side of a seam with a neighbour.
struct Border {
  int neighbour;
  ArrayView array;
  Seam seam;
  bool is_low;  // this process's worker is the lower one
};

std::vector<Border> borders_of(const Communicator& across,
                               Out arrays,
                               const HaloShape& shape,
                               std::size_t overlap,
                               const HaloOptions& options) {
  const DType dtype = arrays[0].dtype();
  const int rank = across.rank();
  std::vector<Border> borders;
  if (rank > 0) {
    borders.push_back({.neighbour = rank - 1,
                       .array = arrays.front(),
                       .seam = seam_at(shape, options.previous_seam, overlap, dtype),
                       .is_low = false});
  }
  if (rank + 1 < across.size()) {
    borders.push_back({.neighbour = rank + 1,
                       .array = arrays.back(),
                       .seam = seam_at(shape, options.next_seam, overlap, dtype),
                       .is_low = true});
  }
  return borders;
}

// `state` is a worker whose GPU reaches the arrays; null if they are in host memory.
void exchange_across(Communicator& across,
                     std::span<const Border> borders,
                     std::size_t overlap,
                     Mode mode,
                     const WorkerState* state) {
  std::vector<Rows> mine, theirs;
  for (const Border& border : borders) {
    mine.push_back(take(state, border.array, border.seam));
    theirs.emplace_back(border.seam.total());
  }
  std::vector<Work> works;
  for (std::size_t i = 0; i < borders.size(); ++i) {
    works.push_back(across.recv_async(theirs[i], borders[i].neighbour));
    works.push_back(across.send_async(mine[i], borders[i].neighbour));
  }
  for (Work& work : works) work.wait();
  for (std::size_t i = 0; i < borders.size(); ++i) {
    const Border& border = borders[i];
    mend_rows(border.is_low ? mine[i] : theirs[i],
              border.is_low ? theirs[i] : mine[i],
              border.seam,
              overlap,
              border.array.dtype(),
              mode);
    put(state, border.array, border.seam, mine[i]);
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
  std::size_t count = 0;
  if (__builtin_mul_overflow(shape.outer, shape.rows, &count) ||
      __builtin_mul_overflow(count, shape.inner, &count)) {
    throw InvalidArgument(
        fmt::format("the shape {} x {} x {} has more elements than can be counted",
                    shape.outer,
                    shape.rows,
                    shape.inner));
  }
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
  if (options.across == nullptr) return;
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
  // Messages cannot be refused while neighbours wait for them, so this makes all go on, or none.
  if (options.across != nullptr) options.across->barrier();
  const DType dtype = arrays[0].dtype();
  const auto do_seam = [&](const WorkerState& state, std::size_t i) {
    const Seam seam = seam_at(shape, seams[i], overlap, dtype);
    if (state.lane == nullptr) {
      mend_on_host(arrays[i], arrays[i + 1], overlap, seam, options.mode);
    } else if (options.mode == Mode::kSwap) {
      swap_on_gpu(state, arrays[i], arrays[i + 1], seam);
    } else {
      blend_by_host(state, arrays[i], arrays[i + 1], overlap, seam);
    }
  };
  const bool apart = are_apart(seams, overlap);
  if (!seams.empty()) {
    pool.run(
        [&](WorkerState& state) {
          const auto index = static_cast<std::size_t>(state.index);
          if (apart) {
            if (index < seams.size()) do_seam(state, index);
          } else if (index == 0) {
            for (std::size_t i = 0; i < seams.size(); ++i) do_seam(state, i);
          }
        },
        {.streams = options.streams});
  }
  if (options.across == nullptr) return;
  const auto borders = borders_of(*options.across, arrays, shape, overlap, options);
  const auto cross = [&](const WorkerState* state) {
    exchange_across(*options.across, borders, overlap, options.mode, state);
  };
  if (!pool.has_gpus()) return cross(nullptr);
  const int first = 0;
  pool.run(
      {&first, 1}, [&](const WorkerState& state) { cross(&state); }, {.streams = options.streams});
}

}  // namespace hocket::pool
