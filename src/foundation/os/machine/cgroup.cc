#include "foundation/os/machine/cgroup.h"

#include <sys/stat.h>

#include <fstream>
#include <string_view>

#include "foundation/base/words.h"
#include "foundation/os/machine/small_file.h"

namespace hocket::os {
namespace {

bool has_name(std::string_view names, std::string_view wanted) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    if (name == wanted) return true;
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
  return false;
}

// A hierarchy of control groups that is mounted as a folder.
struct Mount {
  std::string top;    // the group at the mount point, named as in /proc/self/cgroup
  std::string point;  // the folder at which it is mounted
};

// Returns where the hierarchy of `controller` is mounted; "" means version 2, which has one
// hierarchy for all controllers. Absent if it is not mounted.
std::optional<Mount> find_mount(const std::string& root, std::string_view controller) {
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string text; std::getline(file, text);) {
    std::string_view line = text;
    for (int skipped = 0; skipped < 3; ++skipped) base::next_word(line);
    Mount mount;
    mount.top = base::next_word(line);
    mount.point = base::next_word(line);
    while (!line.empty() && base::next_word(line) != "-") {
    }
    const std::string_view kind = base::next_word(line);
    base::next_word(line);
    const std::string_view options = base::next_word(line);
    const bool is_wanted =
        controller.empty() ? kind == "cgroup2" : kind == "cgroup" && has_name(options, controller);
    if (is_wanted) return mount;
  }
  return {};
}

// Returns this process's group in the hierarchy of `controller`. Absent if the kernel has no such
// hierarchy.
std::optional<std::string> find_group(const std::string& root, std::string_view controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // The line is "4:cpu,cpuacct:/group". Version 2 has no names: "0::/group".
    const std::size_t names = line.find(':') + 1;
    const std::size_t path = line.find(':', names);
    if (names == 0 || path == std::string::npos) continue;
    const std::string_view known = std::string_view(line).substr(names, path - names);
    if (controller.empty() ? known.empty() : has_name(known, controller)) {
      return line.substr(path + 1);
    }
  }
  return {};
}

// Appends the folders of this process's group and of all groups above it, innermost first.
void add_folders(const std::string& root,
                 std::string_view controller,
                 std::vector<std::string>& folders) {
  const auto mount = find_mount(root, controller);
  auto group = find_group(root, controller);
  if (!mount || !group) return;
  // In a container, the group may have its name on the host, while the mount point already is the
  // container's group.
  const std::string top = mount->top == "/" ? "" : mount->top;
  const bool is_below =
      group->starts_with(top) && (group->size() == top.size() || (*group)[top.size()] == '/');
  std::string below = is_below ? group->substr(top.size()) : "";
  for (;;) {
    while (below.ends_with('/')) below.pop_back();
    folders.push_back(root + mount->point + below);
    if (below.empty()) return;
    below.resize(below.rfind('/'));
  }
}

std::vector<std::string> folders_of(const std::string& root, std::string_view controller) {
  std::vector<std::string> folders;
  add_folders(root, "", folders);
  add_folders(root, controller, folders);
  return folders;
}

// Returns how many processors' time the group of this folder grants. Absent if the group has no
// limit of its own.
std::optional<double> granted_processors(const std::string& folder) {
  const std::string text = first_line(folder + "/cpu.max");  // "400000 100000", "max 100000"
  std::string_view line = text;
  auto quota = base::number_in<double>(base::next_word(line));
  auto period = base::number_in<double>(base::next_word(line));
  if (text.empty()) {
    quota = base::first_number<double>(first_line(folder + "/cpu.cfs_quota_us"));  // -1: no limit
    period = base::first_number<double>(first_line(folder + "/cpu.cfs_period_us"));
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return {};
  return *quota / *period;
}

std::uint64_t identity_of(const std::string& folder) {
  struct stat found{};
  if (::stat(folder.c_str(), &found) != 0) return 0;
  return static_cast<std::uint64_t>(found.st_dev) << 48 ^ found.st_ino;
}

}  // namespace

std::vector<TimeLimit> time_limits(const std::string& root) {
  std::vector<TimeLimit> limits;
  for (const std::string& folder : folders_of(root, "cpu")) {
    if (const auto granted = granted_processors(folder)) {
      limits.push_back({.group = identity_of(folder), .processors = *granted});
    }
  }
  return limits;
}

std::optional<std::size_t> memory_limit(std::size_t total, const std::string& root) {
  std::optional<std::size_t> lowest;
  for (const std::string& folder : folders_of(root, "memory")) {
    for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
      const auto bytes = base::first_number<std::size_t>(first_line(folder + name));
      if (bytes && *bytes < total && (!lowest || *bytes < *lowest)) lowest = bytes;
    }
  }
  return lowest;
}

}  // namespace hocket::os
