// Loads shared libraries that are searched at run time.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hocket::os {

// A library that users install themselves. A value.
struct LibraryName {
  // The search begins with the libraries of Python packages, or with the system's.
  enum class Rather : std::uint8_t { kPackages, kSystem };
  const char* file;      // "libnccl.so.2"
  const char* variable;  // the variable that names another file: "HOCKET_NCCL_LIBRARY"
  const char* title;     // "NCCL"
  const char* packages;  // where to get it: "pip: nvidia-nccl-cu13"
  Rather rather = Rather::kPackages;
};

// The places to search. A value.
struct LibrarySearch {
  std::string file;                  // the variable's value; empty: unset
  std::vector<std::string> folders;  // of Python packages
};

// A loaded library, which is never unloaded. A value; any thread may use it.
class LoadedLibrary {
 public:
  // Finds a library. The first choice is the one already loaded in the process. If the user names a
  // file, only that one is tried next. Otherwise it tries the folders, in their order, and the
  // system's, in the order of `Rather`. If none is found, `why_not` gets the reason, and this
  // object is false.
  LoadedLibrary(const LibraryName& name, const LibrarySearch& search, std::string& why_not);
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  const std::string& path() const noexcept { return path_; }

  // Sets `function` to the symbol of this name, or to null.
  template <typename F>
  bool look(const char* name, F*& function) const noexcept {
    function = reinterpret_cast<F*>(::dlsym(handle_, name));
    return function != nullptr;
  }
  // Does the same for a required symbol, and records the first missing one.
  template <typename F>
  bool need(const char* name, F*& function) noexcept {
    if (look(name, function)) return true;
    if (missing_ == nullptr) missing_ = name;
    return false;
  }
  // Returns "" if no required symbol is missing, else the reason.
  std::string why_not_whole() const;

 private:
  void* handle_ = nullptr;
  std::string path_;
  const char* missing_ = nullptr;
};

// Returns the first of several names that is found; the newest should be first. If none is found,
// `why_not` is that of the first name.
LoadedLibrary first_library(std::span<const LibraryName> names,
                            const LibrarySearch& search,
                            std::string& why_not);

// Returns the file of a loaded library of this process whose name contains one of the words, or "".
std::string find_loaded(const std::vector<std::string>& words);

// Formats version numbers of NVIDIA's libraries: "2.28.9" for 22809.
std::string text_of_version(int version);

}  // namespace hocket::os
