// The inner extent of a product, cut where the holders of its factors change.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "arrays/matmul/problem.h"

namespace hocket::matmul {

// Elements of the inner extent that lie one after the other in both factors.
struct InnerRun {
  std::size_t left = 0, right = 0, length = 0;  // indices at the two holders
};

// Those whose holders are the same: one local product. A value.
struct InnerStep {
  std::size_t left_place = 0, right_place = 0;  // along the inner axis of either factor
  std::vector<InnerRun> runs;
  std::size_t length = 0;

  // Where the step's part of a factor lies at its holder, and in a panel of the step alone.
  std::vector<Run> left_runs() const;
  std::vector<Run> right_runs() const;
};

// One step for each pair of holders. `share`: of the elements at `place` of it alone; null: of all.
std::vector<InnerStep> steps_of(const Axis& left,
                                const Axis& right,
                                const Axis* share,
                                std::size_t place);
// The step in parts, none longer than `longest`.
std::vector<InnerStep> cut_step(const InnerStep& step, std::size_t longest);
// The step in so many parts, as equal as can be; some may be empty.
std::vector<InnerStep> parts_of_step(const InnerStep& step, std::size_t parts);

// What one rank multiplies; rows and columns as the two axes have them. A value.
struct Workload {
  Axis m, n;
  std::size_t m_place = 0, n_place = 0;
  std::vector<InnerStep> steps;
};
// By rank.
using Workloads = std::function<Workload(int rank)>;

}  // namespace hocket::matmul
