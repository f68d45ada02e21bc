// The output: tables for a document, and one picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study.h"

namespace hocket::scaling {

// A value: one collective of one size, by all routes, over numbers of ranks.
struct Grid {
  Case first;  // but for its ranks
  std::vector<int> ranks;
  std::vector<Route> routes;
  // By route, then by ranks; absent: not simulated.
  std::vector<std::vector<std::optional<double>>> times;
  std::vector<std::size_t> chosen;  // the route, by ranks
};
Grid simulate_all(const Case& first, const std::vector<int>& ranks, std::uint64_t most_messages);

// Time of the chosen route relative to the best one; absent if it was not simulated.
std::optional<double> excess(const Grid& grid, std::size_t column);

// "all_reduce, 64 KiB".
std::string title_of(const Grid& grid);
std::string table_of(const Grid& grid);
std::string picture_of(const std::vector<Grid>& grids);

}  // namespace hocket::scaling
