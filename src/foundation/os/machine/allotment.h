// The processors, time and memory of a machine that each rank may use, and how the ranks should
// wait because of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/os/machine/cgroup.h"
#include "foundation/os/machine/processor_set.h"

namespace hocket::os {

// The processors, processor time and memory node of one rank. A value.
struct Allotment {
  static constexpr int kUnknown = -1;  // also if the processors are on several nodes or sockets

  ProcessorSet processors;
  std::vector<TimeLimit> limits;
  int node = kUnknown;    // memory node (NUMA), by the kernel's number
  int socket = kUnknown;  // identified by the lowest number of its processors
};

// Returns the allotment of the calling thread. `root` is the folder that contains /proc and /sys;
// tests pass another one.
Allotment find_allotment(const std::string& root = "");
// Returns the allotment of a thread that may use `processors`.
Allotment find_allotment(const std::string& root, const ProcessorSet& processors);

// Convert to a line of text, which ranks exchange, and back. Absent for a bad text.
std::string to_text(const Allotment& allotment);
std::optional<Allotment> to_allotment(std::string_view text);

// How a rank waits for another. A rank that shares processors or processor time must leave them to
// the rank that it waits for. So it yields and sleeps early instead of spinning.
enum class Pace : std::uint8_t { kSpins, kSharesProcessors, kSharesTime };
const char* to_text(Pace pace) noexcept;

// Returns the pace of each rank of one machine. Pure.
//
// A rank spins if two conditions hold:
// - There is a processor for it that no other rank needs. A maximum matching of ranks to processors
//   decides this (Hall's theorem). Ranks without a processor in the matching yield, and so do the
//   ranks that compete with them. The others still spin.
// - Each control group of the rank grants the time of at least as many processors as it has ranks.
std::vector<Pace> paces_of(std::span<const Allotment> ranks);
// Returns the largest number of ranks that spin if each of them has this allotment. Pure.
int most_that_spin(const Allotment& allotment);

}  // namespace hocket::os
