// NCCL, found at run time.
#pragma once

#include <memory>
#include <string>

#include "engines/nccl/abi.h"
#include "os/library.h"

namespace hocket::engines::nccl {

struct Found;

// What NCCL may do. A value.
struct Allowed {
  bool multicast = false;  // NVLink's
  bool ras = false;        // open its port for monitoring
};

// A resource: the loaded library and a table of its functions, under NCCL's names without "nccl".
// Immutable once made, so any thread. Never unloaded.
class Library {
 public:
  // Never throws for what is not there: then `why_not` says so.
  static Found find(const os::LibrarySearch& search, const Allowed& allowed);

  int version() const noexcept { return version_; }  // 22809 is 2.28.9
  std::string version_text() const;
  const std::string& path() const noexcept { return path_; }

  Status (*get_version)(int*) = nullptr;
  Status (*get_unique_id)(UniqueId*) = nullptr;
  const char* (*get_error_string)(Status) = nullptr;
  const char* (*get_last_error)(Comm) = nullptr;
  Status (*comm_init_rank_config)(Comm*, int ranks, UniqueId, int rank, Config*) = nullptr;
  Status (*comm_finalize)(Comm) = nullptr;
  Status (*comm_destroy)(Comm) = nullptr;
  Status (*comm_abort)(Comm) = nullptr;
  Status (*comm_get_async_error)(Comm, Status*) = nullptr;
  Status (*group_start)() = nullptr;
  Status (*group_end)() = nullptr;
  Status (*all_reduce)(const void*, void*, std::size_t, Type, Op, Comm, cuda::Stream) = nullptr;
  Status (*reduce)(const void*, void*, std::size_t, Type, Op, int root, Comm, cuda::Stream) =
      nullptr;
  Status (*reduce_scatter)(const void*, void*, std::size_t, Type, Op, Comm, cuda::Stream) = nullptr;
  Status (*broadcast)(const void*, void*, std::size_t, Type, int root, Comm, cuda::Stream) =
      nullptr;
  Status (*all_gather)(const void*, void*, std::size_t, Type, Comm, cuda::Stream) = nullptr;
  Status (*send)(const void*, std::size_t, Type, int peer, Comm, cuda::Stream) = nullptr;
  Status (*recv)(void*, std::size_t, Type, int peer, Comm, cuda::Stream) = nullptr;

 private:
  std::string fill(os::LoadedLibrary& library);  // why not, or empty

  std::string path_;
  int version_ = 0;
};

struct Found {
  std::shared_ptr<const Library> library;
  std::string why_not;
};

}  // namespace hocket::engines::nccl
