#include "foundation/os/machine/host_identity.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <fstream>

#include "hocket/error.h"

namespace hocket::os {

std::string machine_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot.empty() ? host_name() : boot;
}

std::string host_identity() {
  struct stat network;
  if (stat("/proc/self/ns/net", &network) != 0) network.st_ino = 0;
  return fmt::format("{}/{}/{}", machine_identity(), network.st_ino, geteuid());
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) throw SystemError("gethostname", errno);
  return name;
}

}  // namespace hocket::os
