#include "os/topology.h"

#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "base/words.h"

namespace hocket::os {
namespace {

// The first line, or nothing.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The value after `field` and a colon in a file such as /proc/meminfo.
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

// Where this process's cgroup is, as version 2 or as version 1's `controller`.
std::vector<std::string> cgroup_folders(const std::string& controller) {
  std::vector<std::string> folders;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string number, names, path;
    std::getline(fields, number, ':');
    std::getline(fields, names, ':');
    std::getline(fields, path);
    const std::string wanted = "," + names + ",";
    if (number == "0") {
      folders.push_back("/sys/fs/cgroup" + path);
    } else if (wanted.find("," + controller + ",") != std::string::npos) {
      folders.push_back("/sys/fs/cgroup/" + controller + path);
      folders.push_back("/sys/fs/cgroup/" + controller);  // in a container that sees itself as root
    }
  }
  folders.emplace_back("/sys/fs/cgroup");
  return folders;
}

std::optional<double> processor_quota() {
  for (const std::string& folder : cgroup_folders("cpu")) {
    const std::string line = first_line(folder + "/cpu.max");
    std::string_view words = line;
    auto quota = base::number_in<double>(base::next_word(words));
    auto period = base::number_in<double>(base::next_word(words));
    if (quota && period && *period > 0) return *quota / *period;
    quota = base::first_number<double>(first_line(folder + "/cpu.cfs_quota_us"));
    period = base::first_number<double>(first_line(folder + "/cpu.cfs_period_us"));
    if (quota && period && *quota > 0 && *period > 0) return *quota / *period;
  }
  return {};
}

std::optional<std::size_t> memory_limit(std::size_t total) {
  std::optional<std::size_t> lowest;
  for (const std::string& folder : cgroup_folders("memory")) {
    for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
      const auto bytes = base::first_number<std::size_t>(first_line(folder + name));
      if (bytes && *bytes < total && (!lowest || *bytes < *lowest)) lowest = bytes;
    }
  }
  return lowest;
}

using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

Topology load_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return {nullptr, hwloc_topology_destroy};
  Topology owned(topology, hwloc_topology_destroy);
  if (hwloc_topology_load(topology) != 0) owned.reset();
  return owned;
}

void add_caches(hwloc_topology_t topology, Processors& processors) {
  constexpr std::array kLevels{std::pair{HWLOC_OBJ_L1CACHE, "L1d"},
                               std::pair{HWLOC_OBJ_L2CACHE, "L2"},
                               std::pair{HWLOC_OBJ_L3CACHE, "L3"}};
  for (const auto& [type, name] : kLevels) {
    const hwloc_obj_t first = hwloc_get_obj_by_type(topology, type, 0);
    if (first == nullptr || first->attr == nullptr) continue;
    processors.caches.push_back({.name = name,
                                 .bytes = first->attr->cache.size,
                                 .instances = hwloc_get_nbobjs_by_type(topology, type)});
  }
}

}  // namespace

Processors find_processors() {
  Processors result;
  result.model = field_of("/proc/cpuinfo", "model name");
  result.online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t mask;
  CPU_ZERO(&mask);
  result.allowed =
      ::sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : result.online;
  result.cores = result.allowed;
  result.quota = processor_quota();
  // Only what this process may use is in a topology that is loaded without flags.
  if (const Topology topology = load_topology()) {
    result.cores = std::max(1, hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE));
    result.packages = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_PACKAGE);
    result.numa_nodes = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_NUMANODE);
    add_caches(topology.get(), result);
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
  // "always within_size [advise] never": the one in brackets.
  const std::string setting = first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  const std::size_t open = setting.find('[');
  const std::size_t close = setting.find(']');
  if (open != std::string::npos && close != std::string::npos) {
    result.shmem_huge_pages = setting.substr(open + 1, close - open - 1);
  }
  return result;
}

}  // namespace hocket::os
