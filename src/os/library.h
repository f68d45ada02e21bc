// Shared libraries that are looked for at run time.
#pragma once

#include <string>
#include <vector>

namespace hocket::os {

// A library that users install by themselves. A value.
struct LibraryName {
  const char* file;      // "libnccl.so.2"
  const char* variable;  // that names another one: "HOCKET_NCCL_LIBRARY"
  const char* title;     // "NCCL"
  const char* package;   // Python's: "nvidia-nccl-cu13"
};

// The one in the process, then `named`, where that is not empty, else one in `folders`, in their
// order, then the system's. It stays loaded. Null: there is none, and `why_not` says so.
void* open_library(const LibraryName& name,
                   const std::string& named,
                   const std::vector<std::string>& folders,
                   std::string& why_not);

}  // namespace hocket::os
