#include "hocket/machine.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>

#include "foundation/base/words.h"
#include "foundation/os/machine/host_identity.h"
#include "foundation/os/machine/probe.h"
#include "foundation/os/machine/software.h"
#include "foundation/os/machine/topology.h"

namespace hocket {
namespace {

std::vector<Limit> find_limits() {
  struct Row {
    __rlimit_resource_t resource;
    const char* option;
    const char* name;
  };
  constexpr std::array kRows{Row{RLIMIT_AS, "-v", "address space, bytes"},
                             Row{RLIMIT_FSIZE, "-f", "file size, bytes"},
                             Row{RLIMIT_NOFILE, "-n", "open files"},
                             Row{RLIMIT_NPROC, "-u", "processes"},
                             Row{RLIMIT_MEMLOCK, "-l", "locked memory, bytes"},
                             Row{RLIMIT_CORE, "-c", "core dump, bytes"}};
  std::vector<Limit> result;
  for (const Row& row : kRows) {
    rlimit values{};
    if (::getrlimit(row.resource, &values) != 0) continue;
    Limit limit{.option = row.option, .name = row.name, .soft = {}, .hard = {}};
    if (values.rlim_cur != RLIM_INFINITY) limit.soft = values.rlim_cur;
    if (values.rlim_max != RLIM_INFINITY) limit.hard = values.rlim_max;
    result.push_back(limit);
  }
  return result;
}

std::string address_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
  }
  return text.data();
}

std::vector<NetworkInterface> find_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, ::freeifaddrs);
  std::vector<NetworkInterface> result;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    auto place = std::ranges::find(result, entry->ifa_name, &NetworkInterface::name);
    if (place == result.end()) {
      NetworkInterface added;
      added.name = entry->ifa_name;
      added.up = (entry->ifa_flags & IFF_UP) != 0;
      added.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
      std::ifstream file("/sys/class/net/" + added.name + "/speed");
      std::string line;
      std::getline(file, line);
      const int megabits = base::first_number<int>(line).value_or(0);
      if (megabits > 0) added.megabits = megabits;
      place = result.insert(result.end(), added);
    }
    if (entry->ifa_addr == nullptr) continue;
    const std::string address = address_text(entry->ifa_addr);
    if (!address.empty()) place->addresses.push_back(address);
  }
  return result;
}

std::string kernel_name() {
  utsname name{};
  ::uname(&name);
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

}  // namespace

Machine inspect_machine(bool with_python) {
  Machine machine;
  machine.host = os::host_name();
  machine.kernel = kernel_name();
  std::ifstream("/proc/sys/kernel/core_pattern") >> machine.core_pattern;
  machine.processors = os::find_processors();
  machine.memory = os::find_memory();
  machine.limits = find_limits();
  machine.features = os::probe_features();
  machine.interfaces = find_interfaces();
  os::Python python;
  if (with_python) python = os::find_python();
  machine.libraries = os::find_libraries(python.folders);
  machine.python = std::move(python.packages);
  return machine;
}

}  // namespace hocket
