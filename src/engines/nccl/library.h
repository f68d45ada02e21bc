// NCCL, found at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engines/nccl/abi.h"

namespace hocket::engines::nccl {

struct Found;

// Where to look, and what to allow. A value.
struct Search {
  std::string file;                  // HOCKET_NCCL_LIBRARY; empty: not said
  std::vector<std::string> folders;  // of Python's packages, say
  bool multicast = false;            // let NCCL use NVLink multicast
  bool ras = false;                  // let NCCL open its port for monitoring
};

// A resource: the loaded library and a table of its functions, under NCCL's names without "nccl".
// Immutable once made, so any thread. Never unloaded.
class Library {
 public:
  // In this order: the one already in the process; Search::file; Search::folders; the system's.
  // Never throws for what is not there: then `why_not` says so.
  static Found find(const Search& search);

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
  std::string fill(void* library);  // why not, or empty

  std::string path_;
  int version_ = 0;
};

struct Found {
  std::shared_ptr<const Library> library;
  std::string why_not;
};

}  // namespace hocket::engines::nccl
