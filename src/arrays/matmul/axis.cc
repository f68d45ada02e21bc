#include "arrays/matmul/axis.h"

#include <algorithm>

namespace hocket::matmul {
namespace {

void add(std::vector<Run>& runs, const Run& run) {
  if (!runs.empty()) {
    Run& last = runs.back();
    if (last.from + last.length == run.from && last.to + last.length == run.to) {
      last.length += run.length;
      return;
    }
  }
  runs.push_back(run);
}

}  // namespace

Axis whole_axis(std::size_t length) { return slab_axis(length, 1); }

Axis slab_axis(std::size_t length, std::size_t places) {
  Axis axis{.length = length};
  std::size_t begin = 0;
  for (std::size_t p = 0; p < places; ++p) {
    const std::size_t count = length / places + (p < length % places ? 1 : 0);
    if (count > 0) axis.stretches.push_back({begin, begin + count, p, 0});
    axis.held.push_back(count);
    begin += count;
  }
  return axis;
}

Axis dealt_axis(std::size_t length, std::size_t block, std::size_t places, std::size_t first) {
  Axis axis{.length = length, .held = std::vector<std::size_t>(places)};
  std::size_t place = first;
  for (std::size_t begin = 0; begin < length;) {
    const std::size_t end = begin + std::min(block, length - begin);
    axis.stretches.push_back({begin, end, place, axis.held[place]});
    axis.held[place] += end - begin;
    begin = end;
    place = (place + 1) % places;
  }
  return axis;
}

Axis sorted_axis(const Axis& axis) {
  std::vector<std::size_t> first(axis.places());
  for (std::size_t p = 1; p < first.size(); ++p) first[p] = first[p - 1] + axis.held[p - 1];
  Axis sorted{.length = axis.length, .stretches = axis.stretches, .held = {axis.length}};
  for (AxisPart& stretch : sorted.stretches) {
    stretch.local += first[stretch.place];
    stretch.place = 0;
  }
  return sorted;
}

std::vector<Run> shared_runs(const Axis& wanted,
                             std::size_t place,
                             const Axis& source,
                             std::size_t source_place) {
  std::vector<Run> runs;
  auto at = source.stretches.begin();
  for (const AxisPart& want : wanted.stretches) {
    if (want.place != place) continue;
    while (at != source.stretches.end() && at->end <= want.begin) ++at;
    for (auto here = at; here != source.stretches.end() && here->begin < want.end; ++here) {
      if (here->place != source_place) continue;
      const std::size_t begin = std::max(want.begin, here->begin);
      const std::size_t end = std::min(want.end, here->end);
      add(runs, {here->local + begin - here->begin, want.local + begin - want.begin, end - begin});
    }
  }
  return runs;
}

std::size_t total(const std::vector<Run>& runs) noexcept {
  std::size_t sum = 0;
  for (const Run& run : runs) sum += run.length;
  return sum;
}

std::vector<Run> packed_from(std::vector<Run> runs) {
  std::vector<Run> packed;
  std::size_t at = 0;
  for (const Run& run : runs) {
    add(packed, {at, run.to, run.length});
    at += run.length;
  }
  return packed;
}

std::vector<Run> packed_to(std::vector<Run> runs) {
  std::vector<Run> packed;
  std::size_t at = 0;
  for (const Run& run : runs) {
    add(packed, {run.from, at, run.length});
    at += run.length;
  }
  return packed;
}

}  // namespace hocket::matmul
