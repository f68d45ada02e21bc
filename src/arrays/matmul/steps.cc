#include "arrays/matmul/steps.h"

#include <algorithm>
#include <map>

namespace hocket::matmul {
namespace {

constexpr std::size_t kUnit = 64;

std::vector<Run> runs_of(const InnerStep& step, std::size_t InnerRun::* at) {
  std::vector<Run> runs;
  std::size_t to = 0;
  for (const InnerRun& run : step.runs) {
    if (!runs.empty() && runs.back().from + runs.back().length == run.*at) {
      runs.back().length += run.length;
    } else {
      runs.push_back({run.*at, to, run.length});
    }
    to += run.length;
  }
  return runs;
}

// Returns the part of the axis that contains `element`. It searches from part `which` on, so
// callers pass elements in ascending order.
const AxisPart& at(const Axis& axis, std::size_t& which, std::size_t element) {
  while (axis.stretches[which].end <= element) ++which;
  return axis.stretches[which];
}

// Cuts a step into parts: part i has the elements [begins[i], begins[i + 1]) of the step, and the
// last entry is the step's length. It visits each run once, because a step may have many runs.
std::vector<InnerStep> cut_at(const InnerStep& step, const std::vector<std::size_t>& begins) {
  std::vector<InnerStep> parts;
  std::size_t begin = 0;  // of the current run
  auto run = step.runs.begin();
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    InnerStep& part = parts.emplace_back(InnerStep{.left_place = step.left_place,
                                                   .right_place = step.right_place,
                                                   .length = begins[i + 1] - begins[i]});
    for (; run != step.runs.end() && begin < begins[i + 1]; begin += run->length, ++run) {
      const std::size_t low = std::max(begin, begins[i]);
      const std::size_t high = std::min(begin + run->length, begins[i + 1]);
      if (low < high) {
        part.runs.push_back({run->left + low - begin, run->right + low - begin, high - low});
      }
      if (begin + run->length > begins[i + 1]) break;  // the rest belongs to the next part
    }
  }
  return parts;
}

}  // namespace

std::vector<Run> InnerStep::left_runs() const { return runs_of(*this, &InnerRun::left); }
std::vector<Run> InnerStep::right_runs() const { return runs_of(*this, &InnerRun::right); }

std::vector<InnerStep> steps_of(const Axis& left,
                                const Axis& right,
                                const Axis* share,
                                std::size_t place) {
  std::map<std::pair<std::size_t, std::size_t>, InnerStep> steps;
  std::size_t in_left = 0, in_right = 0, in_share = 0;
  for (std::size_t begin = 0; begin < left.length;) {
    const AxisPart& a = at(left, in_left, begin);
    const AxisPart& b = at(right, in_right, begin);
    std::size_t end = std::min(a.end, b.end);
    bool is_mine = true;
    if (share != nullptr) {
      const AxisPart& c = at(*share, in_share, begin);
      end = std::min(end, c.end);
      is_mine = c.place == place;
    }
    if (is_mine) {
      InnerStep& step = steps[{a.place, b.place}];
      step.left_place = a.place;
      step.right_place = b.place;
      step.length += end - begin;
      const InnerRun run{a.local + begin - a.begin, b.local + begin - b.begin, end - begin};
      InnerRun* last = step.runs.empty() ? nullptr : &step.runs.back();
      if (last != nullptr && last->left + last->length == run.left &&
          last->right + last->length == run.right) {
        last->length += run.length;
      } else {
        step.runs.push_back(run);
      }
    }
    begin = end;
  }
  std::vector<InnerStep> all;
  for (auto& [places, step] : steps) all.push_back(std::move(step));
  return all;
}

std::vector<InnerStep> cut_step(const InnerStep& step, std::size_t longest) {
  std::vector<std::size_t> begins;
  for (std::size_t begin = 0; begin < step.length; begin += longest) begins.push_back(begin);
  if (begins.empty()) begins.push_back(0);
  begins.push_back(step.length);
  return cut_at(step, begins);
}

std::vector<InnerStep> parts_of_step(const InnerStep& step, std::size_t parts) {
  // Cuts at multiples of a unit, because libraries are quicker with aligned addresses.
  const std::size_t each = step.length / parts;
  const std::size_t unit = each >= 2 * kUnit ? kUnit : each >= kFloat8Unit ? kFloat8Unit : 1;
  std::vector<std::size_t> begins(parts + 1);
  for (std::size_t i = 0; i < parts; ++i) begins[i] = step.length * i / parts / unit * unit;
  begins[parts] = step.length;
  return cut_at(step, begins);
}

}  // namespace hocket::matmul
