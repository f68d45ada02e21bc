// Finding the program that the ranks run, before any rank is started.
#pragma once

#include <string>

namespace hocket::cli {

// The exit codes that a shell uses.
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

// A value: the path of a program, or the reason why it cannot be run.
struct Program {
  std::string path;     // empty if the program cannot be run
  std::string problem;  // the error with advice, if `path` is empty
  int exit_code = 0;    // kExitNotFound or kExitNotExecutable, if `path` is empty
};

// Looks `name` up as execvp does: as a path when it has a slash, else in the folders of
// `search_path` (colon separated).
Program find_program(const std::string& name, const std::string& search_path);

}  // namespace hocket::cli
