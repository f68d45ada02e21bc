// Sizes and times as people read them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hocket::cli {

// "8 B", "64 KiB", "1.5 MiB".
std::string size_text(std::size_t bytes);
// "0 s", "850 ns", "12.5 us", "1.20 s"; three digits that matter.
std::string time_text(double seconds);
// Three digits that matter: "0.135", "52.1", "4893".
std::string three_digits(double value);
// "rank 3", "ranks 0, 3".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace hocket::cli
