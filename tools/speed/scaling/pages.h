// The output of the simulations: tables for a document, and one picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study.h"

namespace hocket::scaling {

// The simulated times of one collective at one size. A value.
//
//                ranks[0]      ranks[1]     ...
//   routes[0]    times[0][0]   times[0][1]
//   routes[1]    times[1][0]   times[1][1]
//   ...
struct Grid {
  Case first;  // the case of all times, but for `first.ranks`
  std::vector<int> ranks;
  std::vector<Route> routes;
  // Microseconds; absent if the simulation needed too many messages.
  std::vector<std::vector<std::optional<double>>> times;
  std::vector<std::size_t> chosen;  // index of the route that the cost model chooses, by ranks
};
Grid simulate_all(const Case& first, const std::vector<int>& ranks, std::uint64_t most_messages);

// Returns the time of the chosen route divided by the time of the best one. Absent if the chosen
// route was not simulated. `column` is an index of `ranks`.
std::optional<double> excess(const Grid& grid, std::size_t column);

// Such as "all_reduce, 64 KiB".
std::string title_of(const Grid& grid);
std::string table_of(const Grid& grid);
std::string picture_of(const std::vector<Grid>& grids);

}  // namespace hocket::scaling
