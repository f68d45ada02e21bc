// Files that the kernel makes up when they are read.
#pragma once

#include <string>

namespace hocket::os {

// All of the file; empty where it cannot be read, as when its process ends meanwhile.
std::string read_proc_file(const std::string& path);

}  // namespace hocket::os
