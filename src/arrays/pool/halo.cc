#include "arrays/pool/halo.h"

#include <fmt/format.h>

#include <algorithm>

#include "arrays/pool/checks.h"
#include "arrays/pool/halo_rows.h"
#include "foundation/base/enumerator.h"

namespace hocket::pool {
namespace {

using Mode = HaloOptions::Mode;

void exchange_on_host(
    ArrayView low, ArrayView high, std::size_t overlap, const HaloLayout& layout, Mode mode) {
  for (std::size_t o = 0; o < layout.outer; ++o) {
    swap_or_blend(
        layout.strip(low, o), layout.strip(high, o), layout.bytes, overlap, low.dtype(), mode);
  }
}

void swap_on_gpu(const WorkerState& state,
                 ArrayView low,
                 ArrayView high,
                 const HaloLayout& layout) {
  const DeviceLane& lane = *state.lane;
  const cuda::ScratchMemory kept(lane.device(), layout.bytes, lane.stream().handle());
  for (std::size_t o = 0; o < layout.outer; ++o) {
    lane.copy(kept.data(), layout.strip(low, o), layout.bytes);
    lane.copy(layout.strip(low, o), layout.strip(high, o), layout.bytes);
    lane.copy(layout.strip(high, o), kept.data(), layout.bytes);
  }
}

void exchange_rows(
    Rows& low, Rows& high, const HaloLayout& layout, std::size_t overlap, DType dtype, Mode mode) {
  for (std::size_t o = 0; o < layout.outer; ++o) {
    swap_or_blend(low.data() + o * layout.bytes,
                  high.data() + o * layout.bytes,
                  layout.bytes,
                  overlap,
                  dtype,
                  mode);
  }
}

void blend_by_host(const WorkerState& state,
                   ArrayView low,
                   ArrayView high,
                   std::size_t overlap,
                   const HaloLayout& layout) {
  Rows lower = take(&state, low, layout);
  Rows higher = take(&state, high, layout);
  exchange_rows(lower, higher, layout, overlap, low.dtype(), Mode::kBlend);
  put(&state, low, layout, lower);
  put(&state, high, layout, higher);
}

// This process's side of a seam with a neighbour.
struct Border {
  int neighbour;
  ArrayView array;
  HaloLayout layout;
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
                       .layout = halo_layout(shape, options.previous_seam, overlap, dtype),
                       .is_low = false});
  }
  if (rank + 1 < across.size()) {
    borders.push_back({.neighbour = rank + 1,
                       .array = arrays.back(),
                       .layout = halo_layout(shape, options.next_seam, overlap, dtype),
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
    mine.push_back(take(state, border.array, border.layout));
    theirs.emplace_back(border.layout.total());
  }
  std::vector<Work> works;
  for (std::size_t i = 0; i < borders.size(); ++i) {
    works.push_back(across.recv_async(theirs[i], borders[i].neighbour));
    works.push_back(across.send_async(mine[i], borders[i].neighbour));
  }
  for (Work& work : works) work.wait();
  for (std::size_t i = 0; i < borders.size(); ++i) {
    const Border& border = borders[i];
    exchange_rows(border.is_low ? mine[i] : theirs[i],
                  border.is_low ? theirs[i] : mine[i],
                  border.layout,
                  overlap,
                  border.array.dtype(),
                  mode);
    put(state, border.array, border.layout, mine[i]);
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
  base::require_enumerator(options.mode, HaloOptions::Mode::kBlend, "mode", "HaloOptions::Mode");
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
    pool.require_streams(options.streams);
    pool.require_open();
  } catch (const InvalidArgument& error) {
    if (options.across != nullptr) options.across->refuse(error.what());
    throw;
  }
  // A rank cannot refuse a message for which a neighbour waits. So this barrier makes all ranks go
  // on, or none.
  if (options.across != nullptr) options.across->barrier();
  const DType dtype = arrays[0].dtype();
  const auto do_seam = [&](const WorkerState& state, std::size_t i) {
    const HaloLayout layout = halo_layout(shape, seams[i], overlap, dtype);
    if (state.lane == nullptr) {
      exchange_on_host(arrays[i], arrays[i + 1], overlap, layout, options.mode);
    } else if (options.mode == Mode::kSwap) {
      swap_on_gpu(state, arrays[i], arrays[i + 1], layout);
    } else {
      blend_by_host(state, arrays[i], arrays[i + 1], overlap, layout);
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
