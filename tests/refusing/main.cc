// refusing CALL=ERROR... -- PROGRAM ARGUMENTS...: runs the program with calls that the kernel
// refuses; ERROR is EPERM or ENOSYS.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include "refusing.h"

namespace {

void refuse(const std::string& argument) {
  const auto equals = argument.find('=');
  const std::string error = equals == std::string::npos ? "" : argument.substr(equals + 1);
  if (error != "EPERM" && error != "ENOSYS") {
    throw std::runtime_error("expected CALL=EPERM or CALL=ENOSYS, not " + argument);
  }
  hocket::refusing::refuse(argument.substr(0, equals), error == "EPERM" ? EPERM : ENOSYS);
}

}  // namespace

int main(int count, char** arguments) {
  int next = 1;
  try {
    for (; next < count && std::strcmp(arguments[next], "--") != 0; ++next) refuse(arguments[next]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "refusing: %s\n", error.what());
    return 2;
  }
  if (next + 1 >= count) {
    std::fprintf(stderr, "usage: refusing CALL=ERROR... -- PROGRAM ARGUMENTS...\n");
    return 2;
  }
  execvp(arguments[next + 1], arguments + next + 1);
  std::perror(arguments[next + 1]);
  return 127;
}
