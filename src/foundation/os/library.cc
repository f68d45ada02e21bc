#include "foundation/os/library.h"

#include <fmt/format.h>
#include <link.h>

namespace hocket::os {
namespace {

constexpr int kLoad = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;

void* open_packaged(const LibraryName& name, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    if (void* found = ::dlopen((folder + "/" + name.file).c_str(), kLoad)) return found;
  }
  return nullptr;
}

void* open(const LibraryName& name, const LibrarySearch& search, std::string& why_not) {
  if (void* loaded = ::dlopen(name.file, kLoad | RTLD_NOLOAD)) return loaded;
  if (!search.file.empty()) {
    void* wanted = ::dlopen(search.file.c_str(), kLoad);
    if (wanted == nullptr) why_not = fmt::format("{}: {}", name.variable, ::dlerror());
    return wanted;
  }
  const bool system_first = name.first == LibraryName::First::kSystem;
  void* found = system_first ? nullptr : open_packaged(name, search.folders);
  if (found == nullptr) found = ::dlopen(name.file, kLoad);
  if (found != nullptr) return found;
  why_not = fmt::format(
      "{}; install {} ({}), or set {}", ::dlerror(), name.title, name.packages, name.variable);
  return system_first ? open_packaged(name, search.folders) : nullptr;
}

}  // namespace

LoadedLibrary::LoadedLibrary(const LibraryName& name,
                             const LibrarySearch& search,
                             std::string& why_not)
    : handle_(open(name, search, why_not)) {
  link_map* map = nullptr;
  if (handle_ != nullptr && ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) {
    path_ = map->l_name;
  }
}

std::string LoadedLibrary::why_not_whole() const {
  return missing_ == nullptr ? "" : fmt::format("{} has no {}", path_, missing_);
}

LoadedLibrary first_library(std::span<const LibraryName> names,
                            const LibrarySearch& search,
                            std::string& why_not) {
  LoadedLibrary found(names.front(), search, why_not);
  std::string why;
  for (const LibraryName& name : names.subspan(1)) {
    if (!found) found = LoadedLibrary(name, search, why);
  }
  return found;
}

std::string find_loaded(const std::vector<std::string>& words) {
  struct Search {
    const std::vector<std::string>& words;
    std::string found;
  } search{words, {}};
  const auto look = [](dl_phdr_info* object, std::size_t, void* data) {
    auto& looking = *static_cast<Search*>(data);
    const std::string path = object->dlpi_name;
    const std::string name = path.substr(path.rfind('/') + 1);
    for (const std::string& word : looking.words) {
      if (name.find(word) == std::string::npos) continue;
      looking.found = path;
      return 1;
    }
    return 0;
  };
  ::dl_iterate_phdr(look, &search);
  return search.found;
}

std::string text_of_version(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace hocket::os
