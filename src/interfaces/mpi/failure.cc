#include "interfaces/mpi/failure.h"

#include <array>
#include <map>
#include <mutex>
#include <new>
#include <string_view>

#include "hocket/error.h"

namespace hocket::mpi {
namespace {

// The process keeps the last kTexts texts. A code has the index of its text in the bits above its
// class.
constexpr int kTexts = 1024;
constexpr int kClassBits = 16;

struct Texts {
  std::mutex mutex;
  std::array<std::string, kTexts> kept;
  int next = 0;
};
Texts& texts() {
  static Texts& made = *new Texts();  // NOLINT: it outlives what the program destroys
  return made;
}

int class_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return MPI_ERR_ARG;
    case ErrorCode::kPeerDied:
      return MPIX_ERR_PROC_FAILED;
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kDeadlock:
    case ErrorCode::kMismatch:
    case ErrorCode::kAborted:
    case ErrorCode::kRendezvous:
    case ErrorCode::kSystem:
    case ErrorCode::kDevice:
      return MPI_ERR_OTHER;
  }
  return MPI_ERR_INTERN;
}

}  // namespace

int code_with_text(int error_class, std::string text) {
  Texts& all = texts();
  const std::lock_guard lock(all.mutex);
  all.kept[static_cast<std::size_t>(all.next)] = std::move(text);
  const int code = error_class | (all.next + 1) << kClassBits;
  all.next = (all.next + 1) % kTexts;
  return code;
}

void fail(int error_class, std::string text) {
  throw Failure{code_with_text(error_class, std::move(text))};
}

int code_of_caught() noexcept {
  try {
    try {
      throw;
    } catch (const Failure& e) {
      return e.code;
    } catch (const Error& e) {
      const bool is_revoked = e.code() == ErrorCode::kAborted &&
                              std::string_view(e.what()).find(kRevoked) != std::string_view::npos;
      return code_with_text(is_revoked ? MPIX_ERR_REVOKED : class_of(e.code()), e.what());
    } catch (const std::bad_alloc&) {
      return MPI_ERR_NO_MEM;
    } catch (const std::exception& e) {
      return code_with_text(MPI_ERR_INTERN, e.what());
    }
  } catch (...) {
    return MPI_ERR_INTERN;
  }
}

namespace {

// The error classes, codes and texts that the program has added.
struct Added {
  std::mutex mutex;
  int next = MPI_ERR_LASTCODE + 1;
  std::map<int, int> classes;  // by code; a class is a code, too
  std::map<int, std::string> texts;
};
Added& added() {
  static Added& made = *new Added();  // NOLINT: it outlives what the program destroys
  return made;
}

bool is_of_program(int code) {
  const std::lock_guard lock(added().mutex);
  return added().classes.count(code) != 0;
}

const char* name_of_class(int error_class) {
  for (std::size_t i = 0; i < kErrorClassCount; ++i) {
    if (kErrorClasses[i].handle == error_class) return kErrorClasses[i].name;
  }
  return nullptr;
}

}  // namespace

bool is_known(int code) {
  if (is_of_program(code)) return true;
  const int error_class = code & ((1 << kClassBits) - 1);
  return code >= 0 && (code >> kClassBits) <= kTexts && name_of_class(error_class) != nullptr;
}

int class_of(int code) {
  {
    const std::lock_guard lock(added().mutex);
    if (const auto found = added().classes.find(code); found != added().classes.end()) {
      return found->second;
    }
  }
  return is_known(code) ? code & ((1 << kClassBits) - 1) : MPI_ERR_UNKNOWN;
}

std::string text_of(int code) {
  if (is_of_program(code)) {
    const std::lock_guard lock(added().mutex);
    const auto found = added().texts.find(code);
    return found == added().texts.end() ? std::string() : found->second;
  }
  if (!is_known(code)) fail(MPI_ERR_ARG, "errorcode is no error code: " + std::to_string(code));
  if (code == MPI_SUCCESS) return "MPI_SUCCESS: no error";
  const std::string name = name_of_class(class_of(code));
  const std::string explanation = explanation_of(code);
  return explanation.empty() ? name : name + ": " + explanation;
}

std::string explanation_of(int code) {
  const int place = (code >> kClassBits) - 1;
  if (place < 0 || place >= kTexts) return {};
  Texts& all = texts();
  const std::lock_guard lock(all.mutex);
  return all.kept[static_cast<std::size_t>(place)];
}

int last_used_code() {
  const std::lock_guard lock(added().mutex);
  return added().next - 1;
}

}  // namespace hocket::mpi

#include "mpi_calls.h"

namespace hocket::mpi::call {

void Error_class(int errorcode, int* errorclass) {
  require(is_known(errorcode), MPI_ERR_ARG, "errorcode is no error code");
  *errorclass = class_of(errorcode);
}
void Error_string(int errorcode, char* string, int* resultlen) {
  const std::string text = text_of(errorcode).substr(0, MPI_MAX_ERROR_STRING - 1);
  text.copy(string, text.size());
  string[text.size()] = '\0';
  *resultlen = static_cast<int>(text.size());
}

void Add_error_class(int* errorclass) {
  const std::lock_guard lock(added().mutex);
  *errorclass = added().next++;
  added().classes[*errorclass] = *errorclass;
}
void Add_error_code(int errorclass, int* errorcode) {
  require(is_known(errorclass), MPI_ERR_ARG, "errorclass is no error class");
  const std::lock_guard lock(added().mutex);
  *errorcode = added().next++;
  added().classes[*errorcode] = errorclass;
}
void Add_error_string(int errorcode, const char* string) {
  require(is_of_program(errorcode), MPI_ERR_ARG, "errorcode is none that was added");
  const std::lock_guard lock(added().mutex);
  added().texts[errorcode] = std::string(string).substr(0, MPI_MAX_ERROR_STRING - 1);
}

namespace {
// Removes a class or code that the program added. Throws if it has a text, or codes of its class.
void remove(int code, bool is_class) {
  require(is_of_program(code), MPI_ERR_ARG, "it is none that was added");
  const std::lock_guard lock(added().mutex);
  auto& classes = added().classes;
  require((classes[code] == code) == is_class, MPI_ERR_ARG, "it is of the other kind");
  for (const auto& [other, of] : classes) {
    require(other == code || of != code, MPI_ERR_ARG, "a code of this class is left");
  }
  require(added().texts.count(code) == 0, MPI_ERR_ARG, "its string is left");
  classes.erase(code);
}
}  // namespace

void Remove_error_class(int errorclass) { remove(errorclass, true); }
void Remove_error_code(int errorcode) { remove(errorcode, false); }
void Remove_error_string(int errorcode) {
  require(is_of_program(errorcode), MPI_ERR_ARG, "errorcode is none that was added");
  const std::lock_guard lock(added().mutex);
  require(added().texts.erase(errorcode) != 0, MPI_ERR_ARG, "errorcode has no string");
}

}  // namespace hocket::mpi::call
