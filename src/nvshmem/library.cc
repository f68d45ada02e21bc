#include "nvshmem/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "os/library.h"

namespace hocket::nvshmem {
namespace {

constexpr os::LibraryName kName{
    "libnvshmem_host.so.3", "HOCKET_NVSHMEM_LIBRARY", "NVSHMEM", "nvidia-nvshmem-cu13"};
constexpr int kOldest = 30200;
constexpr int kNext = 40000;  // may be laid out otherwise

std::string text_of(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace

Found Library::find(const Search& search) {
  Found found;
  void* library = os::open_library(kName, search.file, search.folders, found.why_not);
  if (library == nullptr) return found;
  const auto made = std::make_shared<Library>();
  found.why_not = made->fill(library);
  if (found.why_not.empty()) found.library = made;
  return found;
}

std::string Library::version_text() const { return text_of(version_); }

std::string Library::fill(void* library) {
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) path_ = map->l_name;
  const auto look = [&]<typename F>(const char* name, F*& slot) {
    slot = reinterpret_cast<F*>(::dlsym(library, name));
    return slot != nullptr;
  };
  if (!look("nvshmemx_vendor_get_version_info", vendor_get_version_info)) {
    return fmt::format("{} does not say its version", path_);
  }
  int major = 0;
  int minor = 0;
  int patch = 0;
  vendor_get_version_info(&major, &minor, &patch);
  version_ = major * 10000 + minor * 100 + patch;
  if (version_ < kOldest || version_ >= kNext) {
    return fmt::format("{} is NVSHMEM {}, and hocket needs {}, or a later {}",
                       path_,
                       text_of(version_),
                       text_of(kOldest),
                       kOldest / 10000);
  }
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto& slot) {
    if (!look(name, slot) && missing == nullptr) missing = name;
  };
  find("nvshmemx_init_status", init_status);
  find("nvshmemx_get_uniqueid", get_uniqueid);
  find("nvshmemx_hostlib_init_attr", hostlib_init_attr);
  find("nvshmem_my_pe", my_pe);
  find("nvshmem_n_pes", n_pes);
  find("nvshmem_malloc", malloc);
  find("nvshmem_free", free);
  find("nvshmem_ptr", ptr);
  look("nvshmemx_team_get_uniqueid", team_get_uniqueid);
  look("nvshmemx_team_init", team_init);
  return missing == nullptr ? "" : fmt::format("{} has no {}", path_, missing);
}

}  // namespace hocket::nvshmem
