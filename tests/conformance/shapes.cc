#include <algorithm>

#include "cases.h"

namespace hocket::conformance {

using engine::Kind;

namespace {

struct Listed {
  std::vector<std::size_t> counts, places;
  std::size_t span = 0;  // elements of the array they lie in
};

// Places parts one after the other, or, for half of the seeds, in reverse with gaps between.
Listed place_parts(std::vector<std::size_t> counts, std::uint64_t seed) {
  Listed listed{.counts = std::move(counts), .places = {}};
  const std::size_t n = listed.counts.size();
  listed.places.resize(n);
  const bool reversed = (seed & 1) != 0;
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t i = reversed ? n - 1 - k : k;
    listed.places[i] = listed.span;
    listed.span += listed.counts[i] + (reversed ? i % 3 : 0);
  }
  return listed;
}

// Elements of the part with which `a` and `b` have to do; often none.
std::size_t part_count(const Case& c, int a, int b) {
  const std::uint64_t h = mix(c.seed + 77 * static_cast<std::uint64_t>(a) + 1000003 * b);
  return h % 5 == 0 ? 0 : mix(h) % (c.count + 1);
}

// In a quarter of the cases only parts that stay on their rank are long.
std::size_t shortened(const Case& c, std::size_t count, bool stays) {
  constexpr std::size_t kFew = 40;
  return stays || c.seed % 4 != 3 ? count : count % kFew;
}

// all_to_all_v: what `from` sends `to`; in place each pair swaps as much.
std::size_t sent_count(const Case& c, int from, int to) {
  const std::size_t count =
      c.in_place ? part_count(c, std::min(from, to), std::max(from, to)) : part_count(c, from, to);
  return shortened(c, count, from == to);
}

Listed part_of_each(const Case& c, int size) {
  std::vector<std::size_t> counts;
  for (int r = 0; r < size; ++r) counts.push_back(shortened(c, part_count(c, r, 0), r == c.root));
  return place_parts(std::move(counts), c.seed);
}

Listed all_to_all_parts(const Case& c, int rank, int size, bool of_in) {
  std::vector<std::size_t> counts;
  for (int r = 0; r < size; ++r) {
    counts.push_back(of_in ? sent_count(c, rank, r) : sent_count(c, r, rank));
  }
  return place_parts(std::move(counts), c.seed >> (of_in || c.in_place ? 0 : 1));
}

void take_in(Shape& shape, const Listed& listed) {
  shape.in_counts = listed.counts;
  shape.in_places = listed.places;
}
void take_out(Shape& shape, const Listed& listed) {
  shape.out_counts = listed.counts;
  shape.out_places = listed.places;
}
void bring(Shape& shape, std::size_t count) {
  shape.has_in = true;
  shape.in_count = count;
}
void get(Shape& shape, std::size_t count) {
  shape.has_out = true;
  shape.out_count = count;
}

void shape_parts(const Case& c, int rank, int size, Shape& shape) {
  const auto r = static_cast<std::size_t>(rank);
  const bool at_root = rank == c.root;
  if (c.kind == Kind::kAllToAllV) {
    const Listed in = all_to_all_parts(c, rank, size, true);
    const Listed out = all_to_all_parts(c, rank, size, false);
    take_in(shape, in);
    take_out(shape, out);
    bring(shape, in.span);
    get(shape, out.span);
    shape.own_count = in.counts[r];
    for (int q = 0; q < size; ++q) {
      const auto i = static_cast<std::size_t>(q);
      const Listed theirs = all_to_all_parts(c, q, size, true);
      shape.result.push_back({out.places[i], out.counts[i], q, theirs.places[r]});
    }
    return;
  }
  const Listed parts = part_of_each(c, size);
  shape.own_count = parts.counts[r];
  switch (c.kind) {
    case Kind::kReduceScatterV:
      take_in(shape, parts);
      bring(shape, parts.span);
      get(shape, shape.own_count);
      shape.out_at = c.in_place ? parts.places[r] : 0;
      shape.result = {{0, shape.own_count, -1, parts.places[r]}};
      break;
    case Kind::kScatterV:
      get(shape, shape.own_count);
      shape.result = {{0, shape.own_count, c.root, parts.places[r]}};
      if (!at_root) break;
      take_in(shape, parts);
      bring(shape, parts.span);
      shape.out_at = c.in_place ? parts.places[r] : 0;
      break;
    default:  // all_gather_v, gather_v
      bring(shape, shape.own_count);
      if (c.kind == Kind::kGatherV && !at_root) break;
      take_out(shape, parts);
      get(shape, parts.span);
      shape.in_at = c.in_place ? parts.places[r] : 0;
      for (int q = 0; q < size; ++q) {
        const auto i = static_cast<std::size_t>(q);
        shape.result.push_back({parts.places[i], parts.counts[i], q, 0});
      }
  }
}

void shape_equal(const Case& c, int rank, int size, Shape& shape) {
  const auto n = static_cast<std::size_t>(size);
  const auto r = static_cast<std::size_t>(rank);
  const bool at_root = rank == c.root;
  const std::size_t own = r * c.count;
  switch (c.kind) {
    case Kind::kBroadcast:
      if (at_root) bring(shape, c.count);
      get(shape, c.count);
      shape.result = {{0, c.count, c.root, 0}};
      break;
    case Kind::kReduce:
    case Kind::kAllReduce:
      bring(shape, c.count);
      if (c.kind == Kind::kReduce && !at_root) break;
      get(shape, c.count);
      shape.result = {{0, c.count, -1, 0}};
      break;
    case Kind::kScan:
      bring(shape, c.count);
      get(shape, c.count);
      shape.result = {{0, c.count, -1, 0, rank + 1}};
      break;
    case Kind::kExscan:
      bring(shape, c.count);
      if (rank == 0) break;
      get(shape, c.count);
      shape.result = {{0, c.count, -1, 0, rank}};
      break;
    case Kind::kReduceScatter:
      bring(shape, n * c.count);
      get(shape, c.count);
      shape.out_at = c.in_place && c.at_own_part ? own : 0;
      shape.result = {{0, c.count, -1, own}};
      break;
    case Kind::kScatter:
      if (at_root) bring(shape, n * c.count);
      get(shape, c.count);
      shape.out_at = c.in_place && at_root ? own : 0;
      shape.result = {{0, c.count, c.root, own}};
      break;
    case Kind::kAllGather:
    case Kind::kGather:
    case Kind::kAllToAll: {
      const bool exchanges = c.kind == Kind::kAllToAll;
      bring(shape, exchanges ? n * c.count : c.count);
      if (c.kind == Kind::kGather && !at_root) break;
      get(shape, n * c.count);
      shape.in_at = c.in_place && !exchanges ? own : 0;
      for (int q = 0; q < size; ++q) {
        const std::size_t at = static_cast<std::size_t>(q) * c.count;
        shape.result.push_back({at, c.count, q, exchanges ? own : 0});
      }
      break;
    }
    default:
      break;
  }
}

}  // namespace

Shape shape_of(const Case& c, int rank, int size) {
  Shape shape;
  const bool in_place = c.in_place && (!c.on_odd_ranks || rank % 2 == 1);
  if (c.kind >= Kind::kReduceScatterV) {
    shape_parts(c, rank, size, shape);
  } else {
    shape_equal(c, rank, size, shape);
  }
  if (!in_place) shape.in_at = shape.out_at = 0;
  shape.one_buffer = in_place && shape.has_in && shape.has_out;
  return shape;
}

}  // namespace hocket::conformance
