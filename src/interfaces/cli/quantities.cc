#include "interfaces/cli/quantities.h"

#include <fmt/format.h>

#include <cmath>

namespace hocket::cli {

std::string size_text(std::size_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (unit < 4 && value >= 1024) {
    value /= 1024;
    ++unit;
  }
  if (unit > 0 && value != std::floor(value)) return fmt::format("{:.1f} {}", value, kUnits[unit]);
  return fmt::format("{:.0f} {}", value, kUnits[unit]);
}

std::string three_digits(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  if (value >= 9.995) return fmt::format("{:.1f}", value);
  if (value >= 0.9995) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

std::string time_text(double seconds) {
  constexpr const char* kUnits[] = {"s", "ms", "us", "ns"};
  int unit = 0;
  while (unit < 3 && seconds < 0.9995) {
    seconds *= 1e3;
    ++unit;
  }
  if (seconds < 0.0005) return "0 s";
  return fmt::format("{} {}", three_digits(seconds), kUnits[unit]);
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

}  // namespace hocket::cli
