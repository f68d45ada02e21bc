// Checks for the examples. A difference is an exception, which determines the program's exit code.
#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace examples {

template <typename T>
std::string in_words(const T& value) {
  if constexpr (std::is_convertible_v<T, double>) {
    return std::to_string(static_cast<double>(value));
  } else {
    return std::string(value);
  }
}

template <typename T, typename U>
void expect_equal(const T& got, const U& wanted, const std::string& what) {
  if (got == wanted) return;
  throw std::runtime_error(what + " is " + in_words(got) + ", but should be " + in_words(wanted));
}

// For main's handler: prints the error and returns the exit code.
inline int failed(const std::exception& error) {
  std::fprintf(stderr, "failed: %s\n", error.what());
  return 1;
}

}  // namespace examples
