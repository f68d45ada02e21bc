// The limits that control groups put on this process, of version 1 and 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hocket::os {

// Processors' worth of time that a control group grants to all its processes together. A value.
struct TimeLimit {
  std::uint64_t group = 0;  // the same number in every process that the limit holds for
  double processors = 0;
};

// The limits of the group that this process is in and of all groups above it, as far as the file
// system shows them. `root` is the folder that /proc and /sys are looked for in.
std::vector<TimeLimit> time_limits(const std::string& root = "");
// The lowest of the memory limits; absent if there is none below `total` bytes.
std::optional<std::size_t> memory_limit(std::size_t total, const std::string& root = "");

}  // namespace hocket::os
