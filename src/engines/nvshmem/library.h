// NVSHMEM, found at run time.
#pragma once

#include <memory>
#include <string>

#include "engines/nvshmem/abi.h"
#include "foundation/os/library.h"

namespace hocket::nvshmem {

struct FoundNvshmem;

// The loaded library, and a table of its functions under NVSHMEM's names without "nvshmem" and
// "nvshmemx". It does not change after its creation, so any thread may use it. The library is never
// unloaded. A resource.
class NvshmemLibrary {
 public:
  // Finds and loads NVSHMEM. If NVSHMEM is missing, this does not throw, and `why_not` has the
  // reason.
  static FoundNvshmem find(const os::LibrarySearch& search);

  int version() const noexcept { return version_; }  // 30405 is 3.4.5
  std::string version_text() const;
  const std::string& path() const noexcept { return path_; }

  void (*vendor_get_version_info)(int* major, int* minor, int* patch) = nullptr;
  NvshmemStatus (*init_status)() = nullptr;
  int (*get_uniqueid)(UniqueId*) = nullptr;
  int (*hostlib_init_attr)(unsigned flags, InitAttributes*) = nullptr;
  int (*my_pe)() = nullptr;
  int (*n_pes)() = nullptr;
  void* (*malloc)(std::size_t) = nullptr;
  void (*free)(void*) = nullptr;
  void* (*ptr)(const void*, int pe) = nullptr;
  // Both functions are null if NVSHMEM is older than 3.3.
  int (*team_get_uniqueid)(TeamId*) = nullptr;
  int (*team_init)(Team*, TeamConfig*, long mask, int pes, int pe) = nullptr;

 private:
  std::string fill(os::LoadedLibrary& library);  // returns the reason of a failure, or ""

  std::string path_;
  int version_ = 0;
};

struct FoundNvshmem {
  std::shared_ptr<const NvshmemLibrary> library;
  std::string why_not;
};

}  // namespace hocket::nvshmem
