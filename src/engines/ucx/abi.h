// The part of UCP's binary interface that hocket uses, as of version 1.13. Layouts and values are
// UCX's. tests/compile compares them with ucp.h if that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hocket::engines::ucx {

// UCX's status codes. The type has one byte, as in UCX's declaration.
enum class UcsStatus : signed char {
  kOk = 0,
  kInProgress = 1,
  kNoResource = -2,
  kTruncated = -9,
  kBusy = -15,
  kCancelled = -16,
  kLast = -100,
};

using Context = struct ucp_context*;
using Config = struct ucp_config*;
using Worker = struct ucp_worker*;
using Endpoint = struct ucp_ep*;
using Address = struct ucp_address;

// The result of an operation: null if it is complete, an encoded error, or a request in progress.
using StatusPointer = void*;
inline UcsStatus error_in(StatusPointer pointer) noexcept {
  const auto value = reinterpret_cast<std::intptr_t>(pointer);
  return value < 0 && value >= static_cast<int>(UcsStatus::kLast) ? static_cast<UcsStatus>(value)
                                                                  : UcsStatus::kOk;
}

struct ContextParams {
  static constexpr std::uint64_t kFeatures = 1;
  static constexpr std::uint64_t kFeatureTag = 1 << 0, kFeatureWakeup = 1 << 4, kFeatureAm = 1 << 6;
  std::uint64_t field_mask = kFeatures;
  std::uint64_t features = kFeatureTag | kFeatureWakeup | kFeatureAm;
  std::size_t request_size = 0;
  void (*request_init)(void*) = nullptr;
  void (*request_cleanup)(void*) = nullptr;
  std::uint64_t tag_sender_mask = 0;
  int workers_shared = 0;
  std::size_t endpoints = 0;
  std::size_t processes_per_node = 0;
  const char* name = nullptr;
};

// The attributes of a context. UCX writes only the attributes in field_mask.
struct ContextAttributes {
  static constexpr std::uint64_t kMemoryTypes = 1 << 2;
  std::uint64_t field_mask = kMemoryTypes;
  std::size_t request_size = 0;
  int thread_mode = 0;
  std::uint64_t memory_types = 0;  // one bit for each UcsMemoryType
  char name[32] = {};
  std::size_t reserved = 0;
};
enum class UcsMemoryType : int { kHost = 0, kCuda = 1 };

struct WorkerParams {
  static constexpr std::uint64_t kThreadMode = 1;
  static constexpr int kSerialized = 1;
  std::uint64_t field_mask = kThreadMode;
  int thread_mode = kSerialized;
  unsigned long cpus[1024 / (8 * sizeof(unsigned long))] = {};
  unsigned events = 0;
  void* user_data = nullptr;
  int event_fd = -1;
  std::uint64_t flags = 0;
  const char* name = nullptr;
  std::size_t am_alignment = 0;
  std::uint64_t client_id = 0;
};

using ErrorHandler = void (*)(void* argument, Endpoint endpoint, UcsStatus status);

struct SocketAddress {
  const void* address = nullptr;
  unsigned length = 0;
};

struct EndpointParams {
  static constexpr std::uint64_t kRemoteAddress = 1, kErrorMode = 2, kErrorHandler = 4;
  static constexpr int kModePeer = 1;
  std::uint64_t field_mask = kRemoteAddress | kErrorMode | kErrorHandler;
  const Address* address = nullptr;
  int error_mode = kModePeer;
  ErrorHandler error_handler = nullptr;
  void* error_argument = nullptr;
  void* user_data = nullptr;
  unsigned flags = 0;
  SocketAddress socket_address;
  void* connection_request = nullptr;
  const char* name = nullptr;
  SocketAddress local_address;
};

struct AmReceiveParam {
  static constexpr std::uint64_t kRendezvous = 1 << 17;
  std::uint64_t attributes;
  Endpoint reply;
};

using AmHandler = UcsStatus (*)(void* argument,
                                const void* header,
                                std::size_t header_length,
                                void* data,
                                std::size_t length,
                                const AmReceiveParam* param);

struct AmHandlerParam {
  static constexpr std::uint64_t kId = 1, kCallback = 4, kArgument = 8;
  std::uint64_t field_mask = kId | kCallback | kArgument;
  unsigned id = 0;
  std::uint32_t flags = 0;
  AmHandler callback = nullptr;
  void* argument = nullptr;
};

// Describes a message that was received by its tag.
struct TagReceived {
  std::uint64_t tag;
  std::size_t length;
};

using OnSent = void (*)(void* request, UcsStatus status, void* user_data);
using OnReceived = void (*)(void* request,
                            UcsStatus status,
                            const TagReceived* received,
                            void* user_data);

struct RequestParam {
  static constexpr std::uint32_t kCallback = 1 << 1, kUserData = 1 << 2, kFlags = 1 << 4,
                                 kMemoryType = 1 << 6, kAtOnce = 1 << 18;
  static constexpr std::uint32_t kAmEager = 1 << 1;
  static constexpr std::uint32_t kCloseForce = 1;
  std::uint32_t mask = 0;
  std::uint32_t flags = 0;
  void* request = nullptr;
  union {
    OnSent sent = nullptr;
    OnReceived received;
  } callback;
  std::uint64_t datatype = 0;
  void* user_data = nullptr;
  void* reply_buffer = nullptr;
  UcsMemoryType memory_type = UcsMemoryType::kHost;
  void* receive_info = nullptr;
  void* memory = nullptr;
};

}  // namespace hocket::engines::ucx
