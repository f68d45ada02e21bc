// Reads the limits that control groups (version 1 and 2) put on this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hocket::os {

// The processor time that a control group grants to all its processes together. A value.
struct TimeLimit {
  std::uint64_t group = 0;  // identifies the group; equal in all its processes
  double processors = 0;    // as a number of processors, which may be a fraction
};

// Returns the limits of this process's group and of all groups above it, as far as the file system
// shows them. `root` is the folder that contains /proc and /sys.
std::vector<TimeLimit> time_limits(const std::string& root = "");
// Returns the lowest memory limit of these groups, in bytes. Absent if no limit is below `total`
// bytes.
std::optional<std::size_t> memory_limit(std::size_t total, const std::string& root = "");

}  // namespace hocket::os
