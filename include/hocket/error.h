// Everything that hocket throws.
//
// Errors are thrown by blocking calls, by `Work::wait` and by constructors; never from a destructor
// and never in another thread than the caller's. Every message says what happened, to whom, and
// what to try; `status()` carries the same as fields.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hocket/abi.h"

namespace hocket {

enum class ErrorCode : std::uint8_t {
  kInvalidArgument,   // a call was refused; the communicator stays usable
  kPeerDied,          // a rank's process ended while it was needed
  kDeadlineExceeded,  // a call did not finish in time
  kMismatch,          // ranks called different things
  kAborted,           // somebody called abort() or rebuild(), or gave a call up
  kRendezvous,        // the ranks could not find or trust each other
  kSystem,            // the operating system refused something
  kDevice,            // a GPU, its driver or its libraries refused something, or are not there
  kDeadlock,          // ranks wait for each other, and no call of theirs can end
};

// What one rank was doing.
struct RankCall {
  int rank = -1;
  std::uint64_t sequence = 0;  // 0: it had not called anything yet
  std::string call;            // "all_reduce #17 sum float32[1024]"

  bool operator==(const RankCall&) const = default;
};

// A value: the fields behind a message. Absent facts are empty or -1.
struct Status {
  ErrorCode code = ErrorCode::kSystem;
  std::string message = {};
  std::string communicator = {};  // its name, "world" for the first
  std::uint64_t sequence = 0;     // the call's number on that communicator, from 1
  std::string operation = {};     // "all_reduce"
  int rank = -1;                  // the rank that reports
  int peer = -1;                  // the rank that caused it
  std::string host = {};
};

class Error : public std::runtime_error {
 public:
  explicit Error(Status status) : std::runtime_error(status.message), status_(std::move(status)) {}
  const Status& status() const noexcept { return status_; }
  ErrorCode code() const noexcept { return status_.code; }

 private:
  Status status_;
};

// An argument was refused on this rank, or on another one (then the message names it). The call has
// had no effect; the communicator can be used further.
class InvalidArgument : public Error {
 public:
  explicit InvalidArgument(const std::string& message)
      : Error({.code = ErrorCode::kInvalidArgument, .message = message}) {}
  explicit InvalidArgument(Status status) : Error(std::move(status)) {}
};

// A rank's process ended while this call, or a later one, needed it.
class PeerDied : public Error {
 public:
  PeerDied(Status status, int rank, int pid, int signal)
      : Error(std::move(status)), rank_(rank), pid_(pid), signal_(signal) {}
  int rank() const noexcept { return rank_; }      // in the communicator
  int pid() const noexcept { return pid_; }        // on its host
  int signal() const noexcept { return signal_; }  // what killed it; 0: nothing, or unknown

 private:
  int rank_, pid_, signal_;
};

// A call did not finish before its deadline.
class DeadlineExceeded : public Error {
 public:
  DeadlineExceeded(Status status, std::vector<int> missing, std::vector<RankCall> calls)
      : Error(std::move(status)), missing_(std::move(missing)), calls_(std::move(calls)) {}
  // The ranks that had not arrived in the call, of the first 64.
  const std::vector<int>& missing() const noexcept { return missing_; }
  // What each of the missing was last seen doing.
  const std::vector<RankCall>& calls() const noexcept { return calls_; }

 private:
  std::vector<int> missing_;
  std::vector<RankCall> calls_;
};

// Ranks of one host wait for each other in blocking calls on one communicator, and nothing is on its way
// that could end any of these. No deadline would have helped, so that the error comes before one.
// `missing` has the ranks that wait, of the first 64, and `calls` what they were last seen doing.
class DeadlockError : public DeadlineExceeded {
 public:
  using DeadlineExceeded::DeadlineExceeded;
};

// Ranks of one communicator called different things under one sequence number.
class Mismatch : public Error {
 public:
  Mismatch(Status status, std::vector<RankCall> calls)
      : Error(std::move(status)), calls_(std::move(calls)) {}
  // The calls that disagree, the first rank of each kind.
  const std::vector<RankCall>& calls() const noexcept { return calls_; }

 private:
  std::vector<RankCall> calls_;
};

// Some rank called abort() or rebuild(), or gave a call up: Ctrl-C, a Work dropped, a close().
class Aborted : public Error {
 public:
  explicit Aborted(Status status) : Error(std::move(status)) {}
};

// Ranks could not find, reach or trust each other.
class RendezvousError : public Error {
 public:
  explicit RendezvousError(const std::string& message)
      : Error({.code = ErrorCode::kRendezvous, .message = message}) {}
  explicit RendezvousError(Status status) : Error(std::move(status)) {}
};

// The operating system refused something that hocket needs.
class SystemError : public Error {
 public:
  SystemError(const std::string& what, int error_number);
  int error_number() const noexcept { return error_number_; }

 private:
  int error_number_;
};

// A GPU, its driver or one of its libraries refused or failed, or is not there.
class DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& message)
      : Error({.code = ErrorCode::kDevice, .message = message}) {}
  explicit DeviceError(Status status) : Error(std::move(status)) {}
};

}  // namespace hocket
