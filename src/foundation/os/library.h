// Searches and loads shared libraries at run time.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hocket::os {

// A library that users install themselves. A value.
struct LibraryName {
  // The start of the search: the folders of Python packages, or the system's libraries.
  enum class First : std::uint8_t { kPackages, kSystem };
  const char* file;      // "libnccl.so.2"
  const char* variable;  // the variable that names another file: "HOCKET_NCCL_LIBRARY"
  const char* title;     // "NCCL"
  const char* packages;  // packages that contain it: "pip: nvidia-nccl-cu13"
  First first = First::kPackages;
};

// The places in which to search for a library. A value.
struct LibrarySearch {
  std::string file;                  // the value of LibraryName::variable; empty: unset
  std::vector<std::string> folders;  // the folders of Python packages
};

// A loaded library. It is never unloaded. A value. Any thread may use it, but only one at a time
// calls `need`.
class LoadedLibrary {
 public:
  // Finds and loads a library, in this order:
  // 1. the library of this name that the process has already loaded;
  // 2. if the user names a file, this file and no other;
  // 3. otherwise the folders of Python packages and the system's libraries; `name.first` says which
  //    of the two comes first.
  // If none is found, `why_not` gets the reason, and this object is false.
  LoadedLibrary(const LibraryName& name, const LibrarySearch& search, std::string& why_not);
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  const std::string& path() const noexcept { return path_; }

  // Sets `function` to the symbol of this name, or to null. Returns whether the library has it.
  template <typename F>
  bool look(const char* name, F*& function) const noexcept {
    function = reinterpret_cast<F*>(::dlsym(handle_, name));
    return function != nullptr;
  }
  // Like `look`, for a required symbol. Remembers the name of the first missing one.
  template <typename F>
  bool need(const char* name, F*& function) noexcept {
    if (look(name, function)) return true;
    if (missing_ == nullptr) missing_ = name;
    return false;
  }
  // Returns "" if `need` has found all symbols, else the reason.
  std::string why_not_whole() const;

 private:
  void* handle_ = nullptr;
  std::string path_;
  const char* missing_ = nullptr;
};

// Returns the first library of `names` that is found. The newest name should be first. If none is
// found, `why_not` is the reason for the first name.
LoadedLibrary first_library(std::span<const LibraryName> names,
                            const LibrarySearch& search,
                            std::string& why_not);

// Returns the file of a library that this process has loaded, and whose file name contains one of
// the words. "" if there is none.
std::string find_loaded(const std::vector<std::string>& words);

// Formats a version number of NVIDIA's libraries, such as "2.28.9" for 22809.
std::string text_of_version(int version);

}  // namespace hocket::os
