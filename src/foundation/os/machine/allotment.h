// The part of a machine that each rank may use, and what follows from the parts of all ranks.
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

// The processors, time and memory node of one rank. A value.
struct Allotment {
  static constexpr int kUnknown = -1;  // also for processors of several nodes or sockets

  ProcessorSet processors;
  std::vector<TimeLimit> limits;
  int node = kUnknown;    // memory node, by the kernel's number
  int socket = kUnknown;  // by the lowest number of its processors
};

// Returns the allotment of the calling thread. `root` is the folder that contains /proc and /sys.
Allotment find_allotment(const std::string& root = "");
// The same for a thread that may use `processors`.
Allotment find_allotment(const std::string& root, const ProcessorSet& processors);

// A line that another rank reads; absent if it is damaged.
std::string to_text(const Allotment& allotment);
std::optional<Allotment> to_allotment(std::string_view text);

// The way in which a rank waits. A rank that shares processors or time must not keep them from the
// rank it waits for. So it yields and sleeps early.
enum class Pace : std::uint8_t { kSpins, kSharesProcessors, kSharesTime };
const char* to_text(Pace pace) noexcept;

// Returns the pace of each rank of one machine. Pure.
//
// Ranks spin on two conditions. Each can have a processor that no other rank needs (a matching, as
// in Hall's theorem). And each control group grants the time of as many processors as it has ranks.
// Ranks without a processor in the matching yield, and so do those that compete with them. The
// others still spin.
std::vector<Pace> paces_of(std::span<const Allotment> ranks);
// The largest number of ranks that spin if each of them has this allotment. Pure.
int most_that_spin(const Allotment& allotment);

}  // namespace hocket::os
