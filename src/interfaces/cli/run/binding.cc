#include "interfaces/cli/run/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <tuple>

#include "hocket/error.h"

namespace hocket::cli {
namespace {

int topology_number(int processor, const char* name, int otherwise) {
  std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", processor, name));
  int value = 0;
  return file >> value ? value : otherwise;
}

// Returns the units that are not divided between ranks: cores, or single processors.
std::vector<std::vector<int>> units_of(const std::vector<Processor>& processors, bool whole_cores) {
  std::vector<std::vector<int>> units;
  for (std::size_t i = 0; i < processors.size(); ++i) {
    const bool same_core = i > 0 && processors[i].package == processors[i - 1].package &&
                           processors[i].core == processors[i - 1].core;
    if (!whole_cores || !same_core) units.emplace_back();
    units.back().push_back(processors[i].number);
  }
  return units;
}

// True if the user has set the binding of threads, or wants more threads a rank than its share.
bool has_other_wish(const EnvironmentBlock& environment, int processors_a_rank) {
  for (const char* name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
    if (environment.has(name)) return true;
  }
  const std::string_view text = environment.get("OMP_NUM_THREADS");
  int threads = 0;
  std::from_chars(text.data(), text.data() + text.size(), threads);
  return threads > processors_a_rank;
}

}  // namespace

std::vector<Processor> allowed_processors() {
  std::vector<Processor> result;
  const auto mask = CpuMask::allowed();
  for (int number = 0; mask && number < CpuMask::kMost; ++number) {
    if (!mask->contains(number)) continue;
    result.push_back({.number = number,
                      .package = topology_number(number, "physical_package_id", 0),
                      .core = topology_number(number, "core_id", number)});
  }
  std::ranges::sort(
      result, {}, [](const Processor& p) { return std::tuple(p.package, p.core, p.number); });
  return result;
}

int count_cores(const std::vector<Processor>& processors) {
  return static_cast<int>(units_of(processors, true).size());
}

std::vector<CpuMask> share_out(const std::vector<Processor>& processors, int ranks) {
  const bool whole_cores = count_cores(processors) >= ranks;
  const auto units = units_of(processors, whole_cores);
  const auto count = static_cast<int>(units.size());
  if (ranks < 1 || count < ranks) return {};
  std::vector<CpuMask> result(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    CpuMask& mask = result[static_cast<std::size_t>(rank)];
    for (int unit = count * rank / ranks; unit < count * (rank + 1) / ranks; ++unit) {
      for (const int number : units[static_cast<std::size_t>(unit)]) mask.add(number);
    }
  }
  return result;
}

std::vector<CpuMask> bind_ranks(Binding binding,
                                const std::vector<Processor>& processors,
                                int ranks,
                                const EnvironmentBlock& environment) {
  const auto count = static_cast<int>(processors.size());
  switch (binding) {
    case Binding::kNone:
      return {};
    case Binding::kCore:
      if (count < ranks) {
        throw InvalidArgument(fmt::format(
            "--bind core: {} ranks, but only {} processors may be used here; use --bind auto, or "
            "fewer ranks",
            ranks,
            count));
      }
      return share_out(processors, ranks);
    case Binding::kAuto:
      if (ranks == 1 || count < ranks || has_other_wish(environment, count / ranks)) return {};
      return share_out(processors, ranks);
  }
  return {};
}

}  // namespace hocket::cli
