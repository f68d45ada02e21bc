#include "hocket/error.h"

#include <cerrno>
#include <cstring>

#include "hocket/held.h"

namespace hocket {
namespace {

std::string text_of(int error_number) {
  const std::string text = std::strerror(error_number);
  if (error_number == EMFILE) return text + "; raise this process's limit (ulimit -n)";
  if (error_number != EFBIG) return text;
  return text +
         "; raise this process's limit of file sizes, which counts shared memory too (ulimit -f)";
}

}  // namespace

SystemError::SystemError(const std::string& what, int error_number)
    : Error({.code = ErrorCode::kSystem, .message = what + ": " + text_of(error_number)}),
      error_number_(error_number) {}

void refuse_moved_from(const char* class_name) {
  throw InvalidArgument(std::string("this ") + class_name +
                        " was moved from and holds nothing any more; use what it was moved to");
}

}  // namespace hocket
