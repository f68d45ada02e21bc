// Finds installed libraries and Python packages.
#pragma once

#include <string>
#include <vector>

#include "hocket/machine.h"

namespace hocket::os {

// The packages of the Python installation that PATH finds. The first entry of `packages` is the
// interpreter itself. `folders` are the folders of packages in which hocket looks for libraries. A
// value.
struct Python {
  std::vector<Software> packages;
  std::vector<std::string> folders;
};
// Finds Python's packages by their metadata, without importing them. Empty if PATH has no Python.
Python find_python();
// Finds the libraries that hocket can use, in the order of hocket's own search, which includes
// `folders`. To get a library's version, it loads the library in a child process. It creates no
// CUDA context.
std::vector<Software> find_libraries(const std::vector<std::string>& folders);

}  // namespace hocket::os
