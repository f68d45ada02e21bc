#include "arrays/fft/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "calls/world/array_calls.h"
#include "foundation/base/enumerator.h"
#include "hocket/error.h"

namespace hocket::fft {
namespace {

// A rank's description of the plan, as the ranks exchange it.
struct Announcement {
  std::uint64_t mark = 0;
  std::int64_t axes = 0, transformed = 0, kind = 0, precision = 0, norm = 0, on_gpu = 0;
  // The shape, then the lower and the upper corner of the source box, then the corners of the
  // target box.
  std::array<std::int64_t, 5 * kMostAxes> corners{};

  Extents corner(std::size_t which) const {
    const auto* at = corners.data() + which * kMostAxes;
    return Extents(at, at + axes);
  }
  Box box(std::size_t which) const { return {corner(1 + 2 * which), corner(2 + 2 * which)}; }
};

// Checks the arguments of this rank. Throws InvalidArgument.
Wanted check_mine(const Extents& shape, const Box& from, const Box& to, const FftOptions& options) {
  base::require_enumerator(options.kind, FftKind::kComplexToReal, "kind", "FftKind");
  base::require_enumerator(options.norm, FftNorm::kNone, "norm", "FftNorm");
  base::require_enumerator(options.planning, FftPlanning::kMeasured, "planning", "FftPlanning");
  if (shape.empty() || shape.size() > kMostAxes) {
    throw InvalidArgument(
        fmt::format("the array has {} axes, expected 1 to {}", shape.size(), kMostAxes));
  }
  if (from.axes() != shape.size() || to.axes() != shape.size()) {
    throw InvalidArgument(fmt::format(
        "the boxes have {} and {} axes, and the array {}", from.axes(), to.axes(), shape.size()));
  }
  const std::size_t axes = options.axes == 0 ? shape.size() : options.axes;
  if (axes > 3 || axes > shape.size()) {
    throw InvalidArgument(fmt::format(
        "{} axes of {} are to be transformed, expected the last 1 to 3", axes, shape.size()));
  }
  if (options.precision != DType::kFloat32 && options.precision != DType::kFloat64) {
    throw InvalidArgument(
        fmt::format("precision is {}, expected float32 or float64", name_of(options.precision)));
  }
  std::size_t room = std::size_t{1} << 48;  // elements still allowed, so that no stride overflows
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && i >= shape.size() - axes) {
      throw InvalidArgument(
          fmt::format("shape ({}) has no elements along axis {}, which is to be "
                      "transformed",
                      fmt::join(shape, ", "),
                      i));
    }
    if (shape[i] != 0) room /= shape[i];
    if (room == 0 || shape[i] > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
      throw InvalidArgument(
          fmt::format("shape ({}) is more than can be transformed", fmt::join(shape, ", ")));
    }
  }
  return {.shape = shape, .first = shape.size() - axes, .kind = options.kind};
}

void check_tiles(const std::vector<Box>& boxes, const Extents& shape, const char* name) {
  const Box whole(Extents(shape.size()), shape);
  std::size_t count = 0;
  for (std::size_t r = 0; r < boxes.size(); ++r) {
    count += boxes[r].count();
    if (!boxes[r].is_empty() && !(intersection(boxes[r], whole) == boxes[r])) {
      throw InvalidArgument(fmt::format("{} of rank {} is {}, which reaches beyond the array, {}",
                                        name,
                                        r,
                                        to_string(boxes[r]),
                                        to_string(whole)));
    }
    for (std::size_t q = 0; q < r; ++q) {
      const Box shared = intersection(boxes[r], boxes[q]);
      if (shared.is_empty()) continue;
      throw InvalidArgument(
          fmt::format("{} of ranks {} and {} both have {}", name, q, r, to_string(shared)));
    }
  }
  if (count == whole.count()) return;
  throw InvalidArgument(fmt::format("{} of all ranks has {} elements, and the array, {}, has {}",
                                    name,
                                    count,
                                    to_string(whole),
                                    whole.count()));
}

}  // namespace

Agreed agree(Communicator& comm,
             const Extents& shape,
             const Box& from,
             const Box& to,
             const FftOptions& options,
             std::uint64_t mark) {
  const auto call = world::whole_call(comm, engine::Kind::kFft);
  Agreed agreed;
  try {
    agreed.wanted = check_mine(shape, from, to, options);
  } catch (const InvalidArgument& error) {
    comm.refuse(error.what());
  }
  Announcement mine{.mark = mark,
                    .axes = static_cast<std::int64_t>(shape.size()),
                    .transformed = static_cast<std::int64_t>(shape.size() - agreed.wanted.first),
                    .kind = static_cast<std::int64_t>(options.kind),
                    .precision = static_cast<std::int64_t>(options.precision),
                    .norm = static_cast<std::int64_t>(options.norm),
                    .on_gpu = options.gpu ? 1 : 0};
  auto* at = mine.corners.data();
  for (const Extents* corner : {&shape, &from.lower(), &from.upper(), &to.lower(), &to.upper()}) {
    std::copy(corner->begin(), corner->end(), at);
    at += kMostAxes;
  }
  std::vector<Announcement> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&mine, 1)),
                  std::as_writable_bytes(std::span(all)),
                  {.deadline = options.deadline});
  for (std::size_t r = 1; r < all.size(); ++r) {
    const auto require = [&](bool same, const char* what) {
      if (same) return;
      throw InvalidArgument(fmt::format("rank {} gives another {} than rank 0", r, what));
    };
    require(all[r].axes == all[0].axes, "number of axes");
    const Extents first = all[0].corner(0), other = all[r].corner(0);
    if (other != first) {
      throw InvalidArgument(fmt::format("rank {} gives shape ({}), and rank 0 ({})",
                                        r,
                                        fmt::join(other, ", "),
                                        fmt::join(first, ", ")));
    }
    require(all[r].transformed == all[0].transformed, "number of axes to transform");
    require(all[r].kind == all[0].kind, "kind of transform");
    require(all[r].precision == all[0].precision, "precision");
    require(all[r].norm == all[0].norm, "norm");
    require(all[r].on_gpu == all[0].on_gpu, "memory (a GPU's or the host's)");
  }
  for (const Announcement& said : all) {
    agreed.from.push_back(said.box(0));
    agreed.to.push_back(said.box(1));
  }
  check_tiles(agreed.from, shape_before(agreed.wanted), "from");
  check_tiles(agreed.to, shape_after(agreed.wanted), "to");
  agreed.token = all[0].mark;
  return agreed;
}

}  // namespace hocket::fft
