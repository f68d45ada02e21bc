#include "engines/nccl/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "base/config.h"

namespace hocket::engines::nccl {
namespace {

constexpr const char* kFile = "libnccl.so.2";
constexpr int kOldest = 21800;
constexpr int kLoad = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;

std::string text_of(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

void* open(const Search& search, std::string& why_not) {
  if (void* loaded = ::dlopen(kFile, kLoad | RTLD_NOLOAD)) return loaded;
  if (!search.file.empty()) {
    void* wanted = ::dlopen(search.file.c_str(), kLoad);
    if (wanted == nullptr) why_not = fmt::format("HOCKET_NCCL_LIBRARY: {}", ::dlerror());
    return wanted;
  }
  for (const std::string& folder : search.folders) {
    if (void* found = ::dlopen((folder + "/" + kFile).c_str(), kLoad)) return found;
  }
  void* system = ::dlopen(kFile, kLoad);
  if (system == nullptr) {
    why_not = fmt::format(
        "{} is neither among Python's packages nor among the system's libraries; install NCCL "
        "(pip: nvidia-nccl-cu13), or set HOCKET_NCCL_LIBRARY to it",
        kFile);
  }
  return system;
}

}  // namespace

Found Library::find(const Search& search) {
  Found found;
  void* library = open(search, found.why_not);
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
