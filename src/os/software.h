// Which libraries and Python packages are installed.
#pragma once

#include <vector>

#include "hocket/machine.h"

namespace hocket::os {

// Loads each in a process of its own and asks its version. Makes no CUDA context.
std::vector<Software> find_libraries();
// Reads the packages' metadata; imports none. Empty without a Python in PATH.
std::vector<Software> find_python();

}  // namespace hocket::os
