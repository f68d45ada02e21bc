// Reads files of /proc and /sys that have one line.
#pragma once

#include <fstream>
#include <string>

namespace hocket::os {

// Returns the first line of a file. Empty if the file cannot be read.
inline std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace hocket::os
