// Shared libraries that are looked for at run time.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hocket::os {

// A library that users install by themselves. A value.
struct LibraryName {
  // Whether the system's is taken before one of Python's packages, or after it.
  enum class Rather : std::uint8_t { kPackages, kSystem };
  const char* file;      // "libnccl.so.2"
  const char* variable;  // that names another one: "HOCKET_NCCL_LIBRARY"
  const char* title;     // "NCCL"
  const char* packages;  // where to get it: "pip: nvidia-nccl-cu13"
  Rather rather = Rather::kPackages;
};

// Where to look for it. A value.
struct LibrarySearch {
  std::string file;                  // what the variable says; empty: nothing
  std::vector<std::string> folders;  // of Python's packages
};

// A library that has been loaded, and stays so. A value; any thread.
class LoadedLibrary {
 public:
  // The one in the process, then the file that the user names, and no other where there is one;
  // then one in the folders, in their order, and the system's, or the other way round. Where there
  // is none, `why_not` says so, and this is false.
  LoadedLibrary(const LibraryName& name, const LibrarySearch& search, std::string& why_not);
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  const std::string& path() const noexcept { return path_; }

  // Has `function` point to what has this name; null where there is nothing.
  template <typename F>
  bool look(const char* name, F*& function) const noexcept {
    function = reinterpret_cast<F*>(::dlsym(handle_, name));
    return function != nullptr;
  }
  // The same for what is needed: the first that is not there is remembered.
  template <typename F>
  bool need(const char* name, F*& function) noexcept {
    if (look(name, function)) return true;
    if (missing_ == nullptr) missing_ = name;
    return false;
  }
  // Empty where nothing that is needed is missing.
  std::string why_not_whole() const;

 private:
  void* handle_ = nullptr;
  std::string path_;
  const char* missing_ = nullptr;
};

// The first of several names that is there, the newest first; where none is, `why_not` is the
// first's.
LoadedLibrary first_library(std::span<const LibraryName> names,
                            const LibrarySearch& search,
                            std::string& why_not);

// The file of a library that this process has loaded whose name has one of the words; empty: none.
std::string find_loaded(const std::vector<std::string>& words);

// "2.28.9" of 22809, as NVIDIA's libraries number their versions.
std::string text_of_version(int version);

}  // namespace hocket::os
