// Chooses between the two forms of a distributed product (forms.h), by expected time. The time is
// estimated from the operations of the busiest rank and the bytes that it needs from other ranks.
#include <algorithm>

#include "arrays/matmul/forms.h"

namespace hocket::matmul {
namespace {

// Rough figures for one core, and for memory that several ranks read. Only large differences
// between the forms matter.
constexpr double kOperations = 2e10;  // a second
constexpr double kBytes = 4e9;        // a second

// Returns, at [i * b.places() + j], the number of elements that place i of `a` and place j of `b`
// share.
std::vector<std::size_t> shared(const Axis& a, const Axis& b) {
  std::vector<std::size_t> counts(a.places() * b.places());
  std::size_t in_b = 0;
  for (const AxisPart& mine : a.stretches) {
    while (in_b > 0 && b.stretches[in_b].begin > mine.begin) --in_b;
    for (; in_b < b.stretches.size() && b.stretches[in_b].begin < mine.end; ++in_b) {
      const AxisPart& other = b.stretches[in_b];
      const std::size_t begin = std::max(mine.begin, other.begin);
      const std::size_t end = std::min(mine.end, other.end);
      if (begin < end) counts[mine.place * b.places() + other.place] += end - begin;
    }
    if (in_b > 0) --in_b;
  }
  return counts;
}

// Returns the number of elements of a factor that `rank` needs and does not have. `first` and
// `second` have the numbers of elements that it needs of each place along the tiling's two axes.
double missing(const Tiling& tiling,
               int rank,
               const std::size_t* first,
               const std::size_t* second) {
  if (tiling.is_replicated()) return 0;
  double sum = 0;
  for (std::size_t i = 0; i < tiling.axis(0).places(); ++i) {
    if (first[i] == 0) continue;
    for (std::size_t j = 0; j < tiling.axis(1).places(); ++j) {
      if (tiling.rank_at(i, j, rank) != rank) {
        sum += static_cast<double>(first[i]) * static_cast<double>(second[j]);
      }
    }
  }
  return sum;
}

double seconds(double operations, double bytes) {
  return operations / kOperations + bytes / kBytes;
}

double gathered_seconds(const Problem& problem, int ranks) {
  const Axis &rows = problem.result.axis(0), &columns = problem.result.axis(1);
  const Tiling &left = problem.left.tiling, &right = problem.right.tiling;
  const auto in_rows = shared(rows, left.axis(0)), in_columns = shared(columns, right.axis(1));
  double worst = 0;
  for (int r = 0; r < ranks; ++r) {
    const auto place = problem.result.place_of(r);
    const double operations = 2.0 * static_cast<double>(rows.held[place[0]]) *
                              static_cast<double>(columns.held[place[1]]) *
                              static_cast<double>(problem.k);
    const double elements =
        missing(
            left, r, in_rows.data() + place[0] * left.axis(0).places(), left.axis(1).held.data()) +
        missing(right,
                r,
                right.axis(0).held.data(),
                in_columns.data() + place[1] * right.axis(1).places());
    worst = std::max(worst,
                     seconds(operations, elements * static_cast<double>(size_of(problem.dtype()))));
  }
  return worst;
}

double reduced_seconds(const Problem& problem, const Axis& share, int ranks) {
  const Tiling &left = problem.left.tiling, &right = problem.right.tiling;
  const auto in_left = shared(share, left.axis(1)), in_right = shared(share, right.axis(0));
  const double results = static_cast<double>(problem.m) * static_cast<double>(problem.n);
  double worst = 0;
  for (int r = 0; r < ranks; ++r) {
    const auto place = static_cast<std::size_t>(r);
    const double elements =
        missing(left, r, left.axis(0).held.data(), in_left.data() + place * left.axis(1).places()) +
        missing(
            right, r, in_right.data() + place * right.axis(0).places(), right.axis(1).held.data());
    worst = std::max(worst,
                     seconds(2 * results * static_cast<double>(share.held[place]),
                             elements * static_cast<double>(size_of(problem.dtype()))));
  }
  // Each sum is written, read by the rank that needs it, and written there: three transfers.
  return worst + seconds(0, 3 * results * static_cast<double>(size_of(problem.sum_dtype())));
}

// Returns whether each rank has its own part of a factor's inner axis.
bool is_spread_along(const Axis& inner, const Axis& outer) {
  return outer.places() == 1 && inner.places() > 1;
}

// Returns an axis of a tiling, with ranks in place of its places.
Axis by_rank(const Tiling& tiling, std::size_t axis, int ranks) {
  Axis share = tiling.axis(axis);
  share.held.assign(static_cast<std::size_t>(ranks), 0);
  for (AxisPart& stretch : share.stretches) {
    const int rank =
        axis == 0 ? tiling.rank_at(stretch.place, 0, 0) : tiling.rank_at(0, stretch.place, 0);
    stretch.place = static_cast<std::size_t>(rank);
    share.held[stretch.place] += stretch.end - stretch.begin;
  }
  return share;
}

}  // namespace

Choice choose(const Problem& problem, MatmulForm wanted, int ranks) {
  const Tiling &left = problem.left.tiling, &right = problem.right.tiling;
  std::vector<Axis> shares;
  if (is_spread_along(left.axis(1), left.axis(0))) shares.push_back(by_rank(left, 1, ranks));
  if (is_spread_along(right.axis(0), right.axis(1))) shares.push_back(by_rank(right, 0, ranks));
  shares.push_back(slab_axis(problem.k, static_cast<std::size_t>(ranks)));
  Choice best{.form = MatmulForm::kReduced};
  double least = 0;
  for (Axis& share : shares) {
    const double cost = reduced_seconds(problem, share, ranks);
    if (best.share.places() > 0 && cost >= least) continue;
    least = cost;
    best.share = std::move(share);
  }
  if (wanted == MatmulForm::kReduced) return best;
  if (wanted == MatmulForm::kGathered || gathered_seconds(problem, ranks) <= least) {
    best.form = MatmulForm::kGathered;
  }
  return best;
}

}  // namespace hocket::matmul
