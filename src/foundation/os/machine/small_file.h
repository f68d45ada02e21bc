// Files of /proc and /sys that hold a line.
#pragma once

#include <fstream>
#include <string>

namespace hocket::os {

// The first line; empty if the file is not there.
inline std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace hocket::os
