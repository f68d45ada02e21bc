#include "foundation/os/machine/topology.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foundation/base/words.h"
#include "foundation/os/machine/allotment.h"
#include "foundation/os/machine/cgroup.h"
#include "foundation/os/machine/small_file.h"

namespace hocket::os {
namespace {

// Returns the text after "FIELD:" in a file such as /proc/meminfo. Empty if the file has no such
// field.
std::string field_of(const std::string& path, const std::string& field) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos ||
        line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1) != field) {
      continue;
    }
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// Returns the smallest time limit of this process's control group and of all groups above it, as a
// number of processors.
std::optional<double> processor_quota(const std::string& root) {
  std::optional<double> least;
  for (const TimeLimit& limit : time_limits(root)) {
    least = std::min(least.value_or(limit.processors), limit.processors);
  }
  return least;
}

// Reads facts about the processors that this process may use from /sys.
class Sys {
 public:
  Sys(const std::string& root, const ProcessorSet& allowed) {
    for (const int cpu : allowed.numbers()) {
      const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
      if (std::filesystem::exists(folder + "/topology", ignored_)) folders_.push_back(folder);
    }
  }

  // Returns how many cores (or packages) these processors belong to. 0: unknown. The file `name` of
  // a processor, such as `core_cpus_list`, lists all processors of its core. Older kernels call it
  // `older_name`.
  int groups(const char* name, const char* older_name) const {
    std::set<std::string> groups;
    for (const std::string& folder : folders_) {
      std::string members = first_line(folder + "/topology/" + name);
      if (members.empty()) members = first_line(folder + "/topology/" + older_name);
      if (!members.empty()) groups.insert(std::move(members));
    }
    return static_cast<int>(groups.size());
  }

  int numa_nodes() const {
    std::set<std::string> nodes;
    for (const std::string& folder : folders_) {
      for (const auto& entry : std::filesystem::directory_iterator(folder, ignored_)) {
        const std::string name = entry.path().filename();
        if (name.starts_with("node")) nodes.insert(name);
      }
    }
    return std::max(1, static_cast<int>(nodes.size()));
  }

  // Returns the data caches of one level. Absent if there are none, or if they are unknown.
  std::optional<Processors::Cache> cache(int level, const char* name) const {
    std::set<std::string> members;
    std::size_t kib = 0;
    for (const std::string& folder : folders_) {
      for (const auto& entry : std::filesystem::directory_iterator(folder + "/cache", ignored_)) {
        const std::string index = entry.path();
        if (base::first_number<int>(first_line(index + "/level")) != level ||
            first_line(index + "/type") == "Instruction") {
          continue;
        }
        // The size is a text such as "512K". If there is no `shared_cpu_list`, the cache belongs to
        // this processor alone.
        std::string size = first_line(index + "/size");
        if (size.ends_with('K')) size.pop_back();
        kib = std::max(kib, base::first_number<std::size_t>(size).value_or(0));
        const std::string list = first_line(index + "/shared_cpu_list");
        members.insert(list.empty() ? index : list);
      }
    }
    if (members.empty() || kib == 0) return {};
    return Processors::Cache{
        .name = name, .bytes = kib * 1024, .instances = static_cast<int>(members.size())};
  }

 private:
  std::vector<std::string> folders_;
  mutable std::error_code ignored_;  // a missing folder counts as empty
};

}  // namespace

Processors find_processors() {
  Processors found = find_processors("", find_allotment().processors);
  found.online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  return found;
}

Processors find_processors(const std::string& root, const ProcessorSet& allowed) {
  Processors result;
  result.model = field_of(root + "/proc/cpuinfo", "model name");
  const auto online = ProcessorSet::parse(first_line(root + "/sys/devices/system/cpu/online"));
  result.online = online ? online->count() : 0;
  result.allowed = allowed.count();
  result.quota = processor_quota(root);
  result.spinning_ranks = most_that_spin({.processors = allowed, .limits = time_limits(root)});
  const Sys sys(root, allowed);
  const int cores = sys.groups("core_cpus_list", "thread_siblings_list");
  result.cores = cores > 0 ? cores : result.allowed;
  result.packages = std::max(1, sys.groups("package_cpus_list", "core_siblings_list"));
  result.numa_nodes = sys.numa_nodes();
  for (const auto& [level, name] : {std::pair{1, "L1d"}, {2, "L2"}, {3, "L3"}}) {
    if (auto cache = sys.cache(level, name)) result.caches.push_back(std::move(*cache));
  }
  return result;
}

Memory find_memory() {
  const auto kib = [](const char* field) {
    return base::first_number<std::size_t>(field_of("/proc/meminfo", field)).value_or(0) * 1024;
  };
  Memory result;
  result.total = kib("MemTotal");
  result.available = kib("MemAvailable");
  result.limit = memory_limit(result.total);
  // The text is "always within_size [advise] never"; the value is in brackets.
  const std::string setting = first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  const std::size_t open = setting.find('[');
  const std::size_t close = setting.find(']');
  if (open != std::string::npos && close != std::string::npos) {
    result.shmem_huge_pages = setting.substr(open + 1, close - open - 1);
  }
  return result;
}

}  // namespace hocket::os
