#include "interfaces/cli/run/program.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

namespace hocket::cli {
namespace {

enum class Look { kRunnable, kAbsent, kForbidden, kFolder };

Look look_at(const std::string& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) {
    return errno == EACCES ? Look::kForbidden : Look::kAbsent;
  }
  if (S_ISDIR(about.st_mode)) return Look::kFolder;
  return ::access(path.c_str(), X_OK) == 0 ? Look::kRunnable : Look::kForbidden;
}

Program refuse(int exit_code, std::string problem) {
  return {.path = {}, .problem = std::move(problem), .exit_code = exit_code};
}

Program not_executable(const std::string& name, const std::string& path, Look look) {
  if (look == Look::kFolder) {
    return refuse(kExitNotExecutable, fmt::format("'{}' is a folder, not a program", path));
  }
  if (name.ends_with(".py")) {
    return refuse(kExitNotExecutable,
                  fmt::format("'{}' is not executable; to run it by Python: hocket run ... -- "
                              "python3 {}",
                              path,
                              name));
  }
  return refuse(kExitNotExecutable,
                fmt::format("'{}' is not executable; try: chmod +x {}", path, path));
}

}  // namespace

Program find_program(const std::string& name, const std::string& search_path) {
  if (name.empty()) return refuse(kExitNotFound, "the program's name is empty");
  if (name.find('/') != std::string::npos) {
    const Look look = look_at(name);
    if (look == Look::kRunnable) return {.path = name, .problem = {}, .exit_code = 0};
    if (look != Look::kAbsent) return not_executable(name, name, look);
    return refuse(kExitNotFound, fmt::format("there is no program '{}'", name));
  }
  Program found_but_not_executable;
  std::istringstream folders(search_path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    const Look look = look_at(path);
    if (look == Look::kRunnable) return {.path = path, .problem = {}, .exit_code = 0};
    if (look == Look::kForbidden && found_but_not_executable.problem.empty()) {
      found_but_not_executable = not_executable(name, path, look);
    }
  }
  if (!found_but_not_executable.problem.empty()) return found_but_not_executable;
  const char* hint = look_at("./" + name) == Look::kAbsent
                         ? "; is it spelled right, and its folder in PATH?"
                         : "; for the one in this folder write ./";
  const bool is_here = look_at("./" + name) != Look::kAbsent;
  return refuse(
      kExitNotFound,
      fmt::format("there is no program '{}' in PATH{}{}", name, hint, is_here ? name : ""));
}

}  // namespace hocket::cli
