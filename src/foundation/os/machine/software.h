// Finds installed libraries and Python packages.
#pragma once

#include <string>
#include <vector>

#include "hocket/machine.h"

namespace hocket::os {

// The interpreter comes first in `packages`. `folders` contain libraries of packages that hocket
// can use.
struct Python {
  std::vector<Software> packages;
  std::vector<std::string> folders;
};
// Reads the packages' metadata without importing them. Empty if PATH has no Python.
Python find_python();
// Searches where hocket does, including those folders. It loads each library in a separate process
// to get its version. It creates no CUDA context.
std::vector<Software> find_libraries(const std::vector<std::string>& folders);

}  // namespace hocket::os
