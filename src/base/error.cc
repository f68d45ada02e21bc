#include "hocket/error.h"

#include <cstring>

namespace hocket {

SystemError::SystemError(const std::string& what, int error_number)
    : Error({.code = ErrorCode::kSystem, .message = what + ": " + std::strerror(error_number)}),
      error_number_(error_number) {}

}  // namespace hocket
