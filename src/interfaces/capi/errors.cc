#include "interfaces/capi/errors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "hocket/error.h"
#include "hocket/types.h"

namespace hocket::capi {
namespace {

// The last error of a thread.
struct LastError {
  int code = HOCKET_OK;
  Status status;
  int signal = 0;
  std::vector<std::int32_t> missing;
  // A static text, used if there was no memory for the message.
  const char* bare = nullptr;

  const char* message() const noexcept { return bare ? bare : status.message.c_str(); }
};
thread_local LastError last;

constexpr const char* kNoMemory = "this process got no memory";

int code_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return HOCKET_INVALID_ARGUMENT;
    case ErrorCode::kPeerDied:
      return HOCKET_PEER_DIED;
    case ErrorCode::kDeadlineExceeded:
      return HOCKET_DEADLINE_EXCEEDED;
    case ErrorCode::kDeadlock:
      return HOCKET_DEADLOCK;
    case ErrorCode::kMismatch:
      return HOCKET_MISMATCH;
    case ErrorCode::kAborted:
      return HOCKET_ABORTED;
    case ErrorCode::kRendezvous:
      return HOCKET_RENDEZVOUS;
    case ErrorCode::kSystem:
      return HOCKET_SYSTEM;
    case ErrorCode::kDevice:
      return HOCKET_DEVICE;
  }
  return HOCKET_INTERNAL;
}

LastError describe_caught(const char* function) {
  LastError error;
  try {
    throw;
  } catch (const Error& e) {
    error.code = code_of(e.code());
    error.status = e.status();
    error.status.message = std::string(function) + ": " + e.what();
    if (const auto* died = dynamic_cast<const PeerDied*>(&e)) error.signal = died->signal();
    if (const auto* late = dynamic_cast<const DeadlineExceeded*>(&e)) {
      error.missing.assign(late->missing().begin(), late->missing().end());
    }
  } catch (const std::bad_alloc&) {
    error.code = HOCKET_NO_MEMORY;
    error.bare = kNoMemory;
  } catch (const std::exception& e) {
    error.code = HOCKET_INTERNAL;
    error.status.message = std::string(function) + ": " + e.what();
  } catch (...) {
    error.code = HOCKET_INTERNAL;
    error.status.message = std::string(function) + ": something was thrown that is no exception";
  }
  return error;
}

// `text` may be absent; names live as long as the program.
template <std::size_t N, typename NameOf>
const char* name_in(std::int32_t index, const NameOf& name_of_index) noexcept {
  try {
    static const auto names = [&] {
      std::array<std::string, N> made;
      for (std::size_t i = 0; i < N; ++i) made[i] = name_of_index(i);
      return made;
    }();
    if (index < 0 || static_cast<std::size_t>(index) >= N) return nullptr;
    return names[static_cast<std::size_t>(index)].c_str();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void fill(hocket_error_info& info) noexcept {
  info.code = last.code;
  info.rank = last.status.rank;
  info.peer = last.status.peer;
  info.signal = last.signal;
  info.sequence = last.status.sequence;
  info.message = last.message();
  info.communicator = last.status.communicator.c_str();
  info.operation = last.status.operation.c_str();
  info.host = last.status.host.c_str();
  info.missing = last.missing.data();
  info.missing_count = last.missing.size();
}

}  // namespace

int record_caught(const char* function) noexcept {
  try {
    last = describe_caught(function);
  } catch (...) {  // no memory for the description
    last.code = HOCKET_NO_MEMORY;
    last.bare = kNoMemory;
  }
  return last.code;
}

}  // namespace hocket::capi

using hocket::capi::guarded;

const char* hocket_version(void) { return HOCKET_VERSION; }

size_t hocket_dtype_size(int32_t dtype) {
  if (dtype < 0 || dtype >= hocket::kDTypeCount) return 0;
  return hocket::size_of(static_cast<hocket::DType>(dtype));
}

const char* hocket_dtype_name(int32_t dtype) {
  return hocket::capi::name_in<hocket::kDTypeCount>(
      dtype, [](std::size_t i) { return hocket::name_of(static_cast<hocket::DType>(i)); });
}

const char* hocket_op_name(int32_t op) {
  return hocket::capi::name_in<hocket::kReduceOpCount>(
      op, [](std::size_t i) { return hocket::name_of(static_cast<hocket::ReduceOp>(i)); });
}

const char* hocket_code_name(int code) {
  constexpr std::array kNames{"ok",
                              "invalid_argument",
                              "peer_died",
                              "deadline_exceeded",
                              "mismatch",
                              "aborted",
                              "rendezvous",
                              "system",
                              "device",
                              "no_memory",
                              "internal"};
  static_assert(kNames.size() == HOCKET_INTERNAL + 1);
  if (code < 0 || static_cast<std::size_t>(code) >= kNames.size()) return nullptr;
  return kNames[static_cast<std::size_t>(code)];
}

const char* hocket_error_message(void) { return hocket::capi::last.message(); }

int hocket_error_details(hocket_error_info* info) {
  return guarded("hocket_error_details", [&] {
    if (info == nullptr) throw hocket::InvalidArgument("info is null");
    if (info->size < sizeof(std::size_t) + sizeof(std::int32_t)) {
      throw hocket::InvalidArgument("info->size is " + std::to_string(info->size) +
                                    ", expected sizeof(hocket_error_info)");
    }
    // Copies only as much as the caller's version of the struct has.
    hocket_error_info known{};
    hocket::capi::fill(known);
    known.size = info->size;
    std::memcpy(info, &known, std::min(info->size, sizeof known));
  });
}
