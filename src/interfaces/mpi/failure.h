// Errors of MPI's calls: codes, their classes and texts.
#pragma once

#include <optional>
#include <string>

#include "interfaces/mpi/abi.h"

namespace hocket::mpi {

// The reason with which MPIX_Comm_revoke aborts hocket's communicator. It tells a revoked
// communicator from others that have failed.
inline constexpr const char* kRevoked = "MPIX_Comm_revoke was called";

// The exception of a failed MPI call, with the error code that it returns. A value.
struct Failure {
  int code = MPI_ERR_OTHER;
  MPI_Comm comm = MPI_COMM_NULL;  // its error handler is called, if the call names no communicator
};

// Returns a code of this error class with its own text. The process keeps the texts of the last
// thousand such errors. Any thread may call it.
int code_with_text(int error_class, std::string text);
[[noreturn]] void fail(int error_class, std::string text);
inline void require(bool holds, int error_class, const char* text) {
  if (!holds) fail(error_class, text);
}

int class_of(int code);
std::string text_of(int code);         // "MPI_ERR_ARG: count is -1"
std::string explanation_of(int code);  // "count is -1"; empty if there is none
bool is_known(int code);

// Returns the code for the current exception.
int code_of_caught() noexcept;

}  // namespace hocket::mpi
