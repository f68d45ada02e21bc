#include "interfaces/capi/errors.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
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
alignas(LastError) thread_local constinit std::array<std::byte, sizeof(LastError)> room{};
thread_local constinit LastError* made = nullptr;

// Returns the last error of this thread. In the main thread, thread-local variables are destroyed
// before the exit handlers run, and a handler may make calls. For these calls `last` makes a new
// LastError, which is never destroyed.
LastError& last() noexcept {
  struct AtThreadsEnd {
    ~AtThreadsEnd() { std::destroy_at(std::exchange(made, nullptr)); }
  };
  if (made == nullptr) [[unlikely]] {
    made = new (room.data()) LastError;
    thread_local const AtThreadsEnd destroys;
  }
  return *made;
}

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

// Returns entry `index` of a table of N names. Null if there is no such entry, or no memory for the
// table. The table is made by the first call and lives as long as the program.
template <std::size_t N, typename NameOf>
const char* name_in(std::int32_t index, const NameOf& name_of_index) noexcept {
  try {
    // outlives all destructors
    static const auto& names = *[&] {
      auto all = std::make_unique<std::array<std::string, N>>();
      for (std::size_t i = 0; i < N; ++i) (*all)[i] = name_of_index(i);
      return all.release();
    }();
    if (index < 0 || static_cast<std::size_t>(index) >= N) return nullptr;
    return names[static_cast<std::size_t>(index)].c_str();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void fill(hocket_error_info& info) noexcept {
  const LastError& error = last();
  info.code = error.code;
  info.rank = error.status.rank;
  info.peer = error.status.peer;
  info.signal = error.signal;
  info.sequence = error.status.sequence;
  info.message = error.message();
  info.communicator = error.status.communicator.c_str();
  info.operation = error.status.operation.c_str();
  info.host = error.status.host.c_str();
  info.missing = error.missing.data();
  info.missing_count = error.missing.size();
  info.reason = error.status.reason.c_str();
}

}  // namespace

int record_caught(const char* function) noexcept {
  try {
    last() = describe_caught(function);
  } catch (...) {  // out of memory for the description
    last().code = HOCKET_NO_MEMORY;
    last().bare = kNoMemory;
  }
  return last().code;
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
                              "internal",
                              "deadlock"};
  static_assert(kNames.size() == HOCKET_DEADLOCK + 1);
  if (code < 0 || static_cast<std::size_t>(code) >= kNames.size()) return nullptr;
  return kNames[static_cast<std::size_t>(code)];
}

const char* hocket_error_message(void) { return hocket::capi::last().message(); }

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
