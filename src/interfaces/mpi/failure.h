// Errors of MPI's calls: codes, their classes and texts.
#pragma once

#include <optional>
#include <string>

#include "interfaces/mpi/abi.h"

namespace hocket::mpi {

// A value, thrown: a call went wrong, and this is its code.
struct Failure {
  int code = MPI_ERR_OTHER;
};

// The code of an error class with a text of its own, which stays known for the next thousand such
// errors of the process. Any thread.
int code_with_text(int error_class, std::string text);
[[noreturn]] void fail(int error_class, std::string text);
inline void require(bool holds, int error_class, const char* text) {
  if (!holds) fail(error_class, text);
}

int class_of(int code);
std::string text_of(int code);
bool is_known(int code);

// The code of what is being caught.
int code_of_caught() noexcept;

}  // namespace hocket::mpi
