#include <fmt/format.h>

#include <algorithm>

#include "hocket/machine.h"

namespace hocket {
namespace {

std::string mend_of(const Feature& feature) {
  if (feature.name == "large segment") {
    return "raise the limits `ulimit -v` and `ulimit -f`, or set HOCKET_SEGMENT_GIB=1";
  }
  return "use Linux 5.16 or later; in a container allow the call in its seccomp profile";
}

void look_at_features(const Machine& machine, std::vector<Problem>& problems) {
  for (const Feature& feature : machine.features) {
    if (feature.works) continue;
    problems.push_back(
        {.stops_hocket = feature.required,
         .what = fmt::format(
             "{} does not work ({}); it is for {}", feature.name, feature.error, feature.purpose),
         .mend = mend_of(feature)});
  }
}

void look_at_limits(const Machine& machine, std::vector<Problem>& problems) {
  for (const Limit& limit : machine.limits) {
    if (limit.option == "-n" && limit.soft && *limit.soft < 256) {
      problems.push_back({.stops_hocket = *limit.soft < 64,
                          .what = fmt::format("only {} files may be open", *limit.soft),
                          .mend = "ulimit -n 4096"});
    }
    // If the kernel passes dumps to a program ("|..."), it does so regardless of the limit.
    const bool taken = machine.core_pattern.starts_with('|');
    if (limit.option == "-c" && (taken || !limit.soft || *limit.soft > 0)) {
      problems.push_back(
          {.stops_hocket = false,
           .what = "core dumps are on: the death of a rank that crashes is seen only when its "
                   "memory has been written",
           .mend = taken ? "sysctl kernel.core_pattern=core, and ulimit -c 0" : "ulimit -c 0"});
    }
  }
}

void look_at_processors(const Machine& machine, std::vector<Problem>& problems) {
  const Processors& processors = machine.processors;
  if (processors.quota && *processors.quota < processors.allowed) {
    problems.push_back(
        {.stops_hocket = false,
         .what = fmt::format("{} processors are visible, but the cgroup grants the time of {:.3g}: "
                             "more ranks than that yield while they wait, and are slower",
                             processors.allowed,
                             *processors.quota),
         .mend = "grant whole processors (a cpuset) rather than a quota, or start fewer ranks"});
  }
  if (processors.allowed == 1) {
    problems.push_back({.stops_hocket = false,
                        .what = "there is one processor: ranks take turns",
                        .mend = "allow more (taskset, cgroup, the machine's size)"});
  }
}

void look_at_memory(const Machine& machine, std::vector<Problem>& problems) {
  const std::string& setting = machine.memory.shmem_huge_pages;
  if (setting == "never" || setting == "deny") {
    problems.push_back(
        {.stops_hocket = false,
         .what = "large arrays in shared memory get no huge pages, which costs some bandwidth",
         .mend = "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled (as root)"});
  }
}

}  // namespace

std::vector<Problem> find_problems(const Machine& machine) {
  std::vector<Problem> problems;
  look_at_features(machine, problems);
  look_at_limits(machine, problems);
  look_at_processors(machine, problems);
  look_at_memory(machine, problems);
  std::ranges::stable_partition(problems, &Problem::stops_hocket);
  return problems;
}

}  // namespace hocket
