// NCCL, found at run time.
#pragma once

#include <memory>
#include <string>

#include "engines/nccl/abi.h"
#include "foundation/os/library.h"

namespace hocket::engines::nccl {

struct FoundNccl;

// The optional features that NCCL may use. A value.
struct Allowed {
  bool multicast = false;  // NVLink multicast
  bool ras = false;        // NCCL's monitoring port (RAS)
};

// The loaded library, and a table of its functions under NCCL's names without "nccl". It does not
// change after its creation, so any thread may use it. The library is never unloaded. A resource.
class NcclLibrary {
 public:
  // Finds and loads NCCL. If NCCL is missing, this does not throw, and `why_not` has the reason.
  static FoundNccl find(const os::LibrarySearch& search, const Allowed& allowed);

  int version() const noexcept { return version_; }  // 22809 is 2.28.9
  std::string version_text() const;
  const std::string& path() const noexcept { return path_; }

  NcclResult (*get_version)(int*) = nullptr;
  NcclResult (*get_unique_id)(NcclUniqueId*) = nullptr;
  const char* (*get_error_string)(NcclResult) = nullptr;
  const char* (*get_last_error)(Comm) = nullptr;
  NcclResult (*comm_init_rank_config)(Comm*, int ranks, NcclUniqueId, int rank, CommConfig*) =
      nullptr;
  NcclResult (*comm_finalize)(Comm) = nullptr;
  NcclResult (*comm_destroy)(Comm) = nullptr;
  NcclResult (*comm_abort)(Comm) = nullptr;
  NcclResult (*comm_get_async_error)(Comm, NcclResult*) = nullptr;
  NcclResult (*group_start)() = nullptr;
  NcclResult (*group_end)() = nullptr;
  NcclResult (*all_reduce)(const void*, void*, std::size_t, NcclType, RedOp, Comm, cuda::Stream) =
      nullptr;
  NcclResult (*reduce)(
      const void*, void*, std::size_t, NcclType, RedOp, int root, Comm, cuda::Stream) = nullptr;
  NcclResult (*reduce_scatter)(
      const void*, void*, std::size_t, NcclType, RedOp, Comm, cuda::Stream) = nullptr;
  NcclResult (*broadcast)(const void*, void*, std::size_t, NcclType, int root, Comm, cuda::Stream) =
      nullptr;
  NcclResult (*all_gather)(const void*, void*, std::size_t, NcclType, Comm, cuda::Stream) = nullptr;
  NcclResult (*send)(const void*, std::size_t, NcclType, int peer, Comm, cuda::Stream) = nullptr;
  NcclResult (*recv)(void*, std::size_t, NcclType, int peer, Comm, cuda::Stream) = nullptr;

 private:
  std::string fill(os::LoadedLibrary& library);  // returns the reason of a failure, or ""

  std::string path_;
  int version_ = 0;
};

struct FoundNccl {
  std::shared_ptr<const NcclLibrary> library;
  std::string why_not;
};

}  // namespace hocket::engines::nccl
