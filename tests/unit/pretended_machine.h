// Simulated machines: trees of /proc and /sys as their kernels would show them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "foundation/os/machine/allotment.h"

namespace hocket::test {

// The shape of a machine. A value.
struct MachineShape {
  int sockets = 1;
  int nodes = 1;     // of each socket; 0: the kernel was built without memory nodes
  int clusters = 1;  // of each node: cores that share an L3 cache
  int cores = 1;     // of each cluster, with two threads
  int threads = 2;   // of each core
  int single = 0;    // further cores of the first cluster, with one thread (hybrid processors)

  int processors() const {
    return sockets * std::max(nodes, 1) * clusters * cores * threads + single;
  }
};

// A resource: a folder with the machine's files, removed at the end.
//
// Processors are numbered as most kernels do: first one thread of every core, socket by socket,
// then the second threads in the same order.
class PretendedMachine {
 public:
  explicit PretendedMachine(const MachineShape& shape);
  ~PretendedMachine();
  PretendedMachine(const PretendedMachine&) = delete;
  PretendedMachine& operator=(const PretendedMachine&) = delete;

  const std::string& root() const { return root_; }
  // Writes a file below the root, whose folders are made.
  void write(const std::string& path, const std::string& line) const;
  // Puts the process into a group of version 2, with these quotas of `cpu.max` from the innermost
  // group outwards; an empty one is not limited.
  void put_into_group(const std::string& group, const std::vector<std::string>& quotas) const;
  // The same of version 1, mounted as containers see it: their own group is the mount point.
  void put_into_old_group(const std::string& group, const std::vector<std::string>& quotas) const;

  // Ranks that a launcher has bound to these lists of processors.
  std::vector<os::Allotment> ranks(const std::vector<std::string>& lists) const;
  // Ranks that may run on every processor.
  std::vector<os::Allotment> unbound(int ranks) const;

 private:
  std::string root_;
  MachineShape shape_;
};

}  // namespace hocket::test
