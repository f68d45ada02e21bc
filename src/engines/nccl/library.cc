#include "engines/nccl/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "base/config.h"
#include "os/library.h"

namespace hocket::engines::nccl {
namespace {

constexpr os::LibraryName kName{"libnccl.so.2", "HOCKET_NCCL_LIBRARY", "NCCL", "nvidia-nccl-cu13"};
constexpr int kOldest = 21800;

std::string text_of(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace

Found Library::find(const Search& search) {
  Found found;
  void* library = os::open_library(kName, search.file, search.folders, found.why_not);
  if (library == nullptr) return found;
  // NCCL reads these once, when it starts; what the user has set stays.
  if (!search.multicast) base::default_environment("NCCL_NVLS_ENABLE", "0");
  if (!search.ras) base::default_environment("NCCL_RAS_ENABLE", "0");
  const auto made = std::make_shared<Library>();
  found.why_not = made->fill(library);
  if (found.why_not.empty()) found.library = made;
  return found;
}

std::string Library::version_text() const { return text_of(version_); }

std::string Library::fill(void* library) {
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) path_ = map->l_name;
  const char* missing = nullptr;
  const auto find = [&]<typename F>(const char* name, F*& slot) {
    slot = reinterpret_cast<F*>(::dlsym(library, name));
    if (slot == nullptr && missing == nullptr) missing = name;
  };
  find("ncclGetVersion", get_version);
  if (get_version == nullptr || get_version(&version_) != Status::kSuccess) {
    return fmt::format("{} does not say its version", path_);
  }
  if (version_ < kOldest) {
    return fmt::format(
        "{} is NCCL {}, and hocket needs {}", path_, text_of(version_), text_of(kOldest));
  }
  find("ncclGetUniqueId", get_unique_id);
  find("ncclGetErrorString", get_error_string);
  find("ncclGetLastError", get_last_error);
  find("ncclCommInitRankConfig", comm_init_rank_config);
  find("ncclCommFinalize", comm_finalize);
  find("ncclCommDestroy", comm_destroy);
  find("ncclCommAbort", comm_abort);
  find("ncclCommGetAsyncError", comm_get_async_error);
  find("ncclGroupStart", group_start);
  find("ncclGroupEnd", group_end);
  find("ncclAllReduce", all_reduce);
  find("ncclReduce", reduce);
  find("ncclReduceScatter", reduce_scatter);
  find("ncclBroadcast", broadcast);
  find("ncclAllGather", all_gather);
  find("ncclSend", send);
  find("ncclRecv", recv);
  return missing == nullptr ? "" : fmt::format("{} has no {}", path_, missing);
}

}  // namespace hocket::engines::nccl
