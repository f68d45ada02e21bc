// How the examples check themselves: what differs is an exception, and the program's exit code.
#pragma once

#include <cstdio>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>

namespace examples {

template <typename T, typename U>
void expect_equal(const T& got, const U& wanted, const std::string& what) {
  if (got == wanted) return;
  std::ostringstream message;
  message << what << " is " << got << ", but should be " << wanted;
  throw std::runtime_error(message.str());
}

// For main's handler: says what went wrong and returns the exit code.
inline int failed(const std::exception& error) {
  std::fprintf(stderr, "failed: %s\n", error.what());
  return 1;
}

}  // namespace examples
