#include "foundation/os/machine/allotment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "foundation/base/words.h"
#include "foundation/os/machine/small_file.h"

namespace hocket::os {
namespace {

constexpr int kNone = -1;
constexpr double kRounding = 0.01;  // for quotas that are fractions

std::string folder_of(const std::string& root, int processor) {
  return fmt::format("{}/sys/devices/system/cpu/cpu{}", root, processor);
}

// Returns the memory node of `processors`; kUnknown if they belong to several nodes.
int find_node(const std::string& root, const ProcessorSet& processors) {
  std::error_code ignored;  // kernels without memory nodes have no such entries
  for (const auto& entry :
       std::filesystem::directory_iterator(folder_of(root, processors.first()), ignored)) {
    const std::string name = entry.path().filename();
    const auto number = name.starts_with("node")
                            ? base::number_in<int>(std::string_view(name).substr(4))
                            : std::nullopt;
    if (!number) continue;
    const auto all = ProcessorSet::parse(
        first_line(fmt::format("{}/sys/devices/system/node/node{}/cpulist", root, *number)));
    return all && processors.is_within(*all) ? *number : Allotment::kUnknown;
  }
  return Allotment::kUnknown;
}

int find_socket(const std::string& root, const ProcessorSet& processors) {
  const std::string folder = folder_of(root, processors.first()) + "/topology/";
  std::string list = first_line(folder + "package_cpus_list");
  if (list.empty()) list = first_line(folder + "core_siblings_list");  // before Linux 5.3
  const auto all = ProcessorSet::parse(list);
  return all && processors.is_within(*all) ? all->first() : Allotment::kUnknown;
}

// A maximum matching of ranks to processors: as many ranks as possible get a processor of their
// own. It is built one rank after the other.
class Matching {
 public:
  explicit Matching(std::span<const Allotment> ranks)
      : ranks_(ranks), processor_of_(ranks.size(), kNone) {
    for (const Allotment& rank : ranks) free_ |= rank.processors;
    rank_on_.resize(free_.empty() ? 0 : static_cast<std::size_t>(free_.numbers().back()) + 1,
                    kNone);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) place(static_cast<int>(rank));
  }

  // Returns whether the rank gets a processor in every maximum matching.
  bool has_own(std::size_t rank) const {
    return processor_of_[rank] != kNone && !contested_.contains(processor_of_[rank]);
  }

 private:
  // Finds a processor for `rank`, by a breadth-first search for a free one. Ranks on the path move
  // to another processor to make room.
  void place(int rank) {
    std::map<int, int> asked_by;  // for each visited processor, the rank that wants it
    ProcessorSet seen;
    std::vector<int> queue{rank};
    for (std::size_t at = 0; at < queue.size(); ++at) {
      ProcessorSet wanted = ranks_[static_cast<std::size_t>(queue[at])].processors;
      wanted -= contested_;
      wanted -= seen;
      ProcessorSet open = wanted;
      open &= free_;
      if (const int processor = open.first(); processor != kNone) {
        asked_by[processor] = queue[at];
        hand_over(processor, asked_by);
        return;
      }
      seen |= wanted;
      for (const int processor : wanted.numbers()) {
        asked_by[processor] = queue[at];
        queue.push_back(rank_on_[static_cast<std::size_t>(processor)]);
      }
    }
    // More ranks want the visited processors than there are. Later searches leave them out.
    contested_ |= seen;
  }

  void hand_over(int processor, const std::map<int, int>& asked_by) {
    ProcessorSet taken;
    taken.add(processor);
    free_ -= taken;
    while (processor != kNone) {
      const int rank = asked_by.at(processor);
      rank_on_[static_cast<std::size_t>(processor)] = rank;
      std::swap(processor, processor_of_[static_cast<std::size_t>(rank)]);
    }
  }

  std::span<const Allotment> ranks_;
  std::vector<int> processor_of_;  // by rank
  std::vector<int> rank_on_;       // by processor
  ProcessorSet free_;
  ProcessorSet contested_;
};

}  // namespace

Allotment find_allotment(const std::string& root) {
  ProcessorSet processors = ProcessorSet::allowed();
  if (processors.empty()) {
    // The kernel does not tell which processors this thread may use. Assume that it may use all.
    for (int i = 0; i < static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)); ++i) processors.add(i);
  }
  return find_allotment(root, processors);
}

Allotment find_allotment(const std::string& root, const ProcessorSet& processors) {
  return {.processors = processors,
          .limits = time_limits(root),
          .node = find_node(root, processors),
          .socket = find_socket(root, processors)};
}

std::string to_text(const Allotment& allotment) {
  std::string text =
      fmt::format("{} {} {}", allotment.processors.text(), allotment.node, allotment.socket);
  for (const TimeLimit& limit : allotment.limits) {
    text += fmt::format(" {} {}", limit.group, limit.processors);
  }
  return text;
}

std::optional<Allotment> to_allotment(std::string_view text) {
  const auto processors = ProcessorSet::parse(base::next_word(text));
  const auto node = base::first_number<int>(text);
  base::next_word(text);
  const auto socket = base::first_number<int>(text);
  base::next_word(text);
  if (!processors || processors->empty() || !node || !socket) return {};
  Allotment allotment{.processors = *processors, .limits = {}, .node = *node, .socket = *socket};
  for (auto word = base::next_word(text); !word.empty(); word = base::next_word(text)) {
    const auto group = base::number_in<std::uint64_t>(word);
    const auto granted = base::number_in<double>(base::next_word(text));
    if (!group || !granted || !(*granted > 0)) return {};
    allotment.limits.push_back({.group = *group, .processors = *granted});
  }
  return allotment;
}

const char* to_text(Pace pace) noexcept {
  switch (pace) {
    case Pace::kSpins:
      return "spins";
    case Pace::kSharesProcessors:
      return "yields, as there are fewer processors than ranks";
    case Pace::kSharesTime:
      return "yields, as the control group grants the time of fewer processors than ranks";
  }
  return "";
}

std::vector<Pace> paces_of(std::span<const Allotment> ranks) {
  std::map<std::uint64_t, int> ranks_in;
  for (const Allotment& rank : ranks) {
    for (const TimeLimit& limit : rank.limits) ++ranks_in[limit.group];
  }
  const Matching matching(ranks);
  std::vector<Pace> paces;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Pace pace = matching.has_own(i) ? Pace::kSpins : Pace::kSharesProcessors;
    for (const TimeLimit& limit : ranks[i].limits) {
      if (limit.processors + kRounding < ranks_in[limit.group]) pace = Pace::kSharesTime;
    }
    paces.push_back(pace);
  }
  return paces;
}

int most_that_spin(const Allotment& allotment) {
  double most = allotment.processors.count();
  for (const TimeLimit& limit : allotment.limits) most = std::min(most, limit.processors);
  return static_cast<int>(most + kRounding);
}

}  // namespace hocket::os
