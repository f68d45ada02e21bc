// Measuring: the cases, their order, and the number of repetitions.
//
// All libraries are measured alternately, batch by batch, so that other load on the machine affects
// them equally. While one library is measured, the ranks of the others sleep.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interfaces/cli/bench/case.h"
#include "interfaces/cli/bench/team.h"

namespace hocket::cli::bench {

// The cases to measure, and with which effort. A value.
struct Plan {
  std::vector<Collective> collectives;
  std::vector<std::size_t> sizes;  // bytes of the larger of a rank's buffers; for numeric cases, N
  std::vector<DType> dtypes;
  ReduceOp op = ReduceOp::kSum;
  std::vector<Memory> memories;  // for hocket; other libraries use `plain` only
  Memory plain = Memory::kOrdinary;
  std::vector<bool> places;  // in place, out of place, or both
  bool dirty = false;        // inputs are rewritten before each call
  int ranks = 2;
  int checks = 2;                       // of each case's results before it is measured
  int repeats = 9;                      // batches of each case
  std::chrono::milliseconds batch{30};  // how long a batch lasts, at least
  // If set, batches are shortened so that all cases are measured by this time. Cases for which no
  // time is left are skipped.
  std::optional<std::chrono::steady_clock::time_point> end;
  std::chrono::seconds case_limit{60};  // for one library at one point; used with `end`
};

// One library's measurements of a case. A value.
struct Row {
  std::string library;
  Case subject;
  int ranks = 1;
  std::size_t bytes = 0;
  std::vector<double> times_us;  // of one call, the slowest rank's, for each batch in order
  std::string wrong;             // the first wrong result; empty: all were right

  double median_us() const;
  // The middle half of the batches lies between the quartiles.
  double lower_quartile_us() const;
  double upper_quartile_us() const;
  double min_us() const;
  double max_us() const;
  double algorithm_gbps() const;  // 1e9 bytes a second; 0 if nothing is moved
  double bus_gbps() const;
  double gigaflops() const;  // 1e9 operations a second, for numeric cases
  bool verified() const noexcept { return wrong.empty(); }
};

// Ratios of `row`'s times to `peer`'s, for batches measured side by side: the median and the middle
// half. The ratio of two medians would compare batches under different loads. A value.
struct Ratio {
  double median = 0;
  double low = 0;
  double high = 0;

  // Below 1 only if both the middle half and the shown figure of two digits are below 1.
  enum class Side { kBelow, kEven, kAbove };
  Side side() const noexcept;
};
Ratio ratio_of(const Row& row, const Row& peer);

// Returns the value that a fraction `part` (0 to 1) of the values lie below, interpolated.
double quantile_of(std::vector<double> values, double part);

// One collective, dtype and size: the rows of all libraries, hocket's first.
using Point = std::vector<Row>;

// A case that a library did not finish: it failed, or did not answer in time. A value.
struct Gap {
  std::string library;
  Case subject;
  int ranks = 1;
  std::size_t bytes = 0;
  std::string why;
};

// Callbacks for progress and problems.
struct Listeners {
  std::function<void(const std::string& what)> progress;
  std::function<void(const Point&)> measured;
  // A library that was dropped, or that cannot do a case.
  std::function<void(const std::string& problem)> problem;
  std::function<void(const Gap&)> unfinished;
  // Starts the team number `place` again after it has failed. Returns null if it does not start.
  std::function<std::unique_ptr<Team>(std::size_t place)> restart;
};

// Measures all of `plan`. A team that fails is ended, reported and set to null. It is started again
// before the next point. After three failures in a row, it is left out until the next collective.
// Throws Interrupted.
std::vector<Point> measure(const Plan& plan,
                           std::vector<std::unique_ptr<Team>>& teams,
                           const Listeners& listeners);

}  // namespace hocket::cli::bench
