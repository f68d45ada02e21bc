// The inner extent of a product, cut where the holders of its factors change.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "arrays/matmul/problem.h"

namespace hocket::matmul {

// Elements of the inner extent that are contiguous in both factors.
struct InnerRun {
  std::size_t left = 0, right = 0, length = 0;  // indices at the two holders
};

// The runs with the same two holders: one local product. A value.
struct InnerStep {
  std::size_t left_place = 0, right_place = 0;  // along the inner axis of either factor
  std::vector<InnerRun> runs;
  std::size_t length = 0;

  // Return the positions of the step's part of a factor: in the holder's array, and in packed data
  // of this step alone.
  std::vector<Run> left_runs() const;
  std::vector<Run> right_runs() const;
};

// Returns one step for each pair of holders. `share` limits the steps to the elements that it has
// at `place`; null: all elements.
std::vector<InnerStep> steps_of(const Axis& left,
                                const Axis& right,
                                const Axis* share,
                                std::size_t place);
// Cuts a step into parts no longer than `longest`.
std::vector<InnerStep> cut_step(const InnerStep& step, std::size_t longest);
// Cuts a step into `parts` parts, as equal as possible. Some parts may be empty.
std::vector<InnerStep> parts_of_step(const InnerStep& step, std::size_t parts);

// The work of one rank; rows and columns are parts of the two axes. A value.
struct Workload {
  Axis m, n;
  std::size_t m_place = 0, n_place = 0;
  std::vector<InnerStep> steps;
};
// Returns the work of a rank.
using Workloads = std::function<Workload(int rank)>;

}  // namespace hocket::matmul
