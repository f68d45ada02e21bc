// The names of error codes, as programs and tools show them.
#pragma once

#include "hocket/error.h"

namespace hocket {

// A value. The texts are static.
struct ErrorNames {
  const char* code;       // "peer_died", as Status.code in Python and hocket_code_name in C
  const char* exception;  // "PeerDied", the class that programs catch
};

constexpr ErrorNames names_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return {"invalid_argument", "InvalidArgument"};
    case ErrorCode::kPeerDied:
      return {"peer_died", "PeerDied"};
    case ErrorCode::kDeadlineExceeded:
      return {"deadline_exceeded", "DeadlineExceeded"};
    case ErrorCode::kMismatch:
      return {"mismatch", "Mismatch"};
    case ErrorCode::kAborted:
      return {"aborted", "Aborted"};
    case ErrorCode::kRendezvous:
      return {"rendezvous", "RendezvousError"};
    case ErrorCode::kSystem:
      return {"system", "SystemError"};
    case ErrorCode::kDevice:
      return {"device", "DeviceError"};
    case ErrorCode::kDeadlock:
      return {"deadlock", "DeadlockError"};
  }
  return {"system", "Error"};
}

}  // namespace hocket
