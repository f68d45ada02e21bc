// Which libraries and Python packages are installed.
#pragma once

#include <string>
#include <vector>

#include "hocket/machine.h"

namespace hocket::os {

// The interpreter first. `folders`: where packages keep libraries that hocket can use.
struct Python {
  std::vector<Software> packages;
  std::vector<std::string> folders;
};
// Reads the packages' metadata; imports none. Empty without a Python in PATH.
Python find_python();
// Looks where hocket would, which is in those folders too: loads each in a process of its own and
// asks its version. Makes no CUDA context.
std::vector<Software> find_libraries(const std::vector<std::string>& folders);

}  // namespace hocket::os
