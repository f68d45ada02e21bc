#include "matmul/steps.h"

#include <algorithm>
#include <map>

namespace hocket::matmul {
namespace {

std::vector<Run> runs_of(const InnerStep& step, std::size_t InnerRun::*at) {
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

// The stretch that has an element; elements are asked for in order.
const AxisPart& at(const Axis& axis, std::size_t& which, std::size_t element) {
  while (axis.stretches[which].end <= element) ++which;
  return axis.stretches[which];
}

// Elements [first, first + length) of the step.
InnerStep slice(const InnerStep& step, std::size_t first, std::size_t length) {
  InnerStep part{.left_place = step.left_place, .right_place = step.right_place, .length = length};
  std::size_t begin = 0;
  for (const InnerRun& run : step.runs) {
    const std::size_t low = std::max(begin, first);
    const std::size_t high = std::min(begin + run.length, first + length);
    if (low < high) {
      part.runs.push_back({run.left + low - begin, run.right + low - begin, high - low});
    }
    begin += run.length;
  }
  return part;
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
  const std::size_t parts = std::max<std::size_t>(1, (step.length + longest - 1) / longest);
  std::vector<InnerStep> all;
  for (std::size_t i = 0; i < parts; ++i) all.push_back(part_of_step(step, i, parts));
  return all;
}

InnerStep part_of_step(const InnerStep& step, std::size_t i, std::size_t parts) {
  const std::size_t first = step.length * i / parts;
  return slice(step, first, step.length * (i + 1) / parts - first);
}

}  // namespace hocket::matmul
