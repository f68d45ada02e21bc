#include "engines/nccl/library.h"

#include <fmt/format.h>

#include "foundation/base/config.h"

namespace hocket::engines::nccl {
namespace {

constexpr os::LibraryName kName{
    "libnccl.so.2", "HOCKET_NCCL_LIBRARY", "NCCL", "pip: nvidia-nccl-cu13"};
constexpr int kOldest = 21800;

}  // namespace

FoundNccl NcclLibrary::find(const os::LibrarySearch& search, const Allowed& allowed) {
  FoundNccl found;
  os::LoadedLibrary library(kName, search, found.why_not);
  if (!library) return found;
  // NCCL reads these variables once, when it starts. Values that the user has set are kept.
  if (!allowed.multicast) base::default_environment("NCCL_NVLS_ENABLE", "0");
  if (!allowed.ras) base::default_environment("NCCL_RAS_ENABLE", "0");
  const auto made = std::make_shared<NcclLibrary>();
  found.why_not = made->fill(library);
  if (found.why_not.empty()) found.library = made;
  return found;
}

std::string NcclLibrary::version_text() const { return os::text_of_version(version_); }

std::string NcclLibrary::fill(os::LoadedLibrary& library) {
  path_ = library.path();
  if (!library.look("ncclGetVersion", get_version) ||
      get_version(&version_) != NcclResult::kSuccess) {
    return fmt::format("{} does not say its version", path_);
  }
  if (version_ < kOldest) {
    return fmt::format(
        "{} is NCCL {}, and hocket needs {}", path_, version_text(), os::text_of_version(kOldest));
  }
  library.need("ncclGetUniqueId", get_unique_id);
  library.need("ncclGetErrorString", get_error_string);
  library.need("ncclGetLastError", get_last_error);
  library.need("ncclCommInitRankConfig", comm_init_rank_config);
  library.need("ncclCommFinalize", comm_finalize);
  library.need("ncclCommDestroy", comm_destroy);
  library.need("ncclCommAbort", comm_abort);
  library.need("ncclCommGetAsyncError", comm_get_async_error);
  library.need("ncclGroupStart", group_start);
  library.need("ncclGroupEnd", group_end);
  library.need("ncclAllReduce", all_reduce);
  library.need("ncclReduce", reduce);
  library.need("ncclReduceScatter", reduce_scatter);
  library.need("ncclBroadcast", broadcast);
  library.need("ncclAllGather", all_gather);
  library.need("ncclSend", send);
  library.need("ncclRecv", recv);
  return library.why_not_whole();
}

}  // namespace hocket::engines::nccl
