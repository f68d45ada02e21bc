#include "pretended_machine.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace hocket::test {
namespace {

std::string listed(const std::vector<int>& processors) {
  os::ProcessorSet set;
  for (const int each : processors) set.add(each);
  return set.text();
}

void append(std::vector<int>& all, const std::vector<int>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

PretendedMachine::PretendedMachine(const MachineShape& shape) : shape_(shape) {
  // Thousands of small files are slow to make on a disk.
  const std::filesystem::path folder =
      ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path();
  std::string pattern = folder / "hocket-machine-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  root_ = pattern;
  const std::string system = "/sys/devices/system/";
  const int per_socket = std::max(shape.nodes, 1);
  const int all_cores = shape.sockets * per_socket * shape.clusters * shape.cores;
  int core = 0;
  for (int socket = 0; socket < shape.sockets; ++socket) {
    std::vector<int> of_socket;
    for (int node = 0; node < per_socket; ++node) {
      std::vector<int> of_node;
      for (int cluster = 0; cluster < shape.clusters; ++cluster) {
        std::vector<int> of_cluster;
        for (int i = 0; i < shape.cores; ++i, ++core) {
          std::vector<int> of_core;
          for (int thread = 0; thread < shape.threads; ++thread) {
            of_core.push_back(core + thread * all_cores);
          }
          for (const int each : of_core) {
            write(fmt::format("{}cpu/cpu{}/topology/core_cpus_list", system, each),
                  listed(of_core));
          }
          append(of_cluster, of_core);
        }
        if (core == shape.cores) {
          for (int i = 0; i < shape.single; ++i) {
            of_cluster.push_back(all_cores * shape.threads + i);
            write(fmt::format("{}cpu/cpu{}/topology/core_cpus_list", system, of_cluster.back()),
                  listed({of_cluster.back()}));
          }
        }
        for (const int each : of_cluster) {
          const std::string cache = fmt::format("{}cpu/cpu{}/cache/index3/", system, each);
          write(cache + "level", "3");
          write(cache + "type", "Unified");
          write(cache + "size", "32768K");
          write(cache + "shared_cpu_list", listed(of_cluster));
        }
        append(of_node, of_cluster);
      }
      const int number = socket * per_socket + node;
      if (shape.nodes > 0) {
        write(fmt::format("{}node/node{}/cpulist", system, number), listed(of_node));
        for (const int each : of_node) {
          write(fmt::format("{}cpu/cpu{}/node{}/cpulist", system, each, number), listed(of_node));
        }
      }
      append(of_socket, of_node);
    }
    for (const int each : of_socket) {
      write(fmt::format("{}cpu/cpu{}/topology/package_cpus_list", system, each), listed(of_socket));
    }
  }
  write(system + "cpu/online", fmt::format("0-{}", shape.processors() - 1));
}

PretendedMachine::~PretendedMachine() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

void PretendedMachine::write(const std::string& path, const std::string& line) const {
  const std::filesystem::path file = root_ + path;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << line << "\n";
}

void PretendedMachine::put_into_group(const std::string& group,
                                      const std::vector<std::string>& quotas) const {
  write("/proc/self/cgroup", "0::" + group);
  write("/proc/self/mountinfo", "30 24 0:27 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw");
  std::string folder = "/sys/fs/cgroup" + group;
  for (const std::string& quota : quotas) {
    write(folder + "/cpu.max", quota.empty() ? "max 100000" : quota);
    folder.resize(folder.rfind('/'));
  }
}

void PretendedMachine::put_into_old_group(const std::string& group,
                                          const std::vector<std::string>& quotas) const {
  write("/proc/self/cgroup", "4:cpu,cpuacct:/outside" + group);
  write("/proc/self/mountinfo",
        "31 24 0:28 /outside /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct");
  std::string folder = "/sys/fs/cgroup/cpu,cpuacct" + group;
  for (const std::string& quota : quotas) {
    write(folder + "/cpu.cfs_quota_us", quota.empty() ? "-1" : quota);
    write(folder + "/cpu.cfs_period_us", "100000");
    folder.resize(folder.rfind('/'));
  }
}

std::vector<os::Allotment> PretendedMachine::ranks(const std::vector<std::string>& lists) const {
  std::vector<os::Allotment> ranks;
  for (const std::string& list : lists) {
    const auto set = os::ProcessorSet::parse(list);
    if (!set) throw std::runtime_error("bad list of processors: " + list);
    ranks.push_back(os::find_allotment(root_, *set));
  }
  return ranks;
}

std::vector<os::Allotment> PretendedMachine::unbound(int ranks) const {
  return this->ranks(std::vector<std::string>(static_cast<std::size_t>(ranks),
                                              fmt::format("0-{}", shape_.processors() - 1)));
}

}  // namespace hocket::test
