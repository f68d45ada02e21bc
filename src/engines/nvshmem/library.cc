#include "engines/nvshmem/library.h"

#include <fmt/format.h>

namespace hocket::nvshmem {
namespace {

constexpr os::LibraryName kName{
    "libnvshmem_host.so.3", "HOCKET_NVSHMEM_LIBRARY", "NVSHMEM", "pip: nvidia-nvshmem-cu13"};
constexpr int kOldest = 30200;
constexpr int kNext = 40000;  // from this version on, the layout of structures may differ

}  // namespace

FoundNvshmem NvshmemLibrary::find(const os::LibrarySearch& search) {
  FoundNvshmem found;
  os::LoadedLibrary library(kName, search, found.why_not);
  if (!library) return found;
  const auto made = std::make_shared<NvshmemLibrary>();
  found.why_not = made->fill(library);
  if (found.why_not.empty()) found.library = made;
  return found;
}

std::string NvshmemLibrary::version_text() const { return os::text_of_version(version_); }

std::string NvshmemLibrary::fill(os::LoadedLibrary& library) {
  path_ = library.path();
  if (!library.look("nvshmemx_vendor_get_version_info", vendor_get_version_info)) {
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
                       version_text(),
                       os::text_of_version(kOldest),
                       kOldest / 10000);
  }
  library.need("nvshmemx_init_status", init_status);
  library.need("nvshmemx_get_uniqueid", get_uniqueid);
  library.need("nvshmemx_hostlib_init_attr", hostlib_init_attr);
  library.need("nvshmem_my_pe", my_pe);
  library.need("nvshmem_n_pes", n_pes);
  library.need("nvshmem_malloc", malloc);
  library.need("nvshmem_free", free);
  library.need("nvshmem_ptr", ptr);
  library.look("nvshmemx_team_get_uniqueid", team_get_uniqueid);
  library.look("nvshmemx_team_init", team_init);
  return library.why_not_whole();
}

}  // namespace hocket::nvshmem
