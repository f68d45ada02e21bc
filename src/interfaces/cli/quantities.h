// Sizes and times in a form for people.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hocket::cli {

// Formats a size: "8 B", "64 KiB", "1.5 MiB".
std::string size_text(std::size_t bytes);
// Formats a time with three significant digits: "0 s", "850 ns", "12.5 us", "1.20 s".
std::string time_text(double seconds);
// Formats a number with three significant digits: "0.135", "52.1", "4893".
std::string three_digits(double value);
// Formats a list of ranks: "rank 3", "ranks 0, 3".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace hocket::cli
