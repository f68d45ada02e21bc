#include "os/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace hocket::os {

void* open_library(const LibraryName& name,
                   const std::string& named,
                   const std::vector<std::string>& folders,
                   std::string& why_not) {
  constexpr int kLoad = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  if (void* loaded = ::dlopen(name.file, kLoad | RTLD_NOLOAD)) return loaded;
  if (!named.empty()) {
    void* wanted = ::dlopen(named.c_str(), kLoad);
    if (wanted == nullptr) why_not = fmt::format("{}: {}", name.variable, ::dlerror());
    return wanted;
  }
  for (const std::string& folder : folders) {
    if (void* found = ::dlopen((folder + "/" + name.file).c_str(), kLoad)) return found;
  }
  void* system = ::dlopen(name.file, kLoad);
  if (system == nullptr) {
    why_not = fmt::format(
        "{} is neither among Python's packages nor among the system's libraries; install {} (pip: "
        "{}), or set {} to it",
        name.file,
        name.title,
        name.package,
        name.variable);
  }
  return system;
}

}  // namespace hocket::os
