// The environment that a started program gets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hocket::cli {

// A value: NAME=VALUE entries. For one thread at a time.
class EnvironmentBlock {
 public:
  // Copies this process's environment.
  static EnvironmentBlock inherited();

  bool has(std::string_view name) const;
  // Returns the value, or an empty view.
  std::string_view get(std::string_view name) const;
  void set(std::string_view name, std::string_view value);
  void erase(std::string_view name);

  // A null-terminated array for execve; valid until this block changes.
  std::vector<char*> pointers();

 private:
  std::vector<std::string>::iterator find(std::string_view name);
  std::vector<std::string> entries_;
};

}  // namespace hocket::cli
