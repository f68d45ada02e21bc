// The errors that hocket throws.
//
// Blocking calls, `Work::wait` and constructors throw errors. Destructors never throw, and no error
// is thrown in another thread than the caller's. Every message says what happened, to whom, and
// what to try. `status()` has the same facts as fields. All types are values.
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
  kAborted,           // a rank called abort() or rebuild(), or gave up a call
  kRendezvous,        // the ranks could not find or trust each other
  kSystem,            // the operating system refused something
  kDevice,            // a GPU, its driver or its libraries refused something, or are missing
  kDeadlock,          // ranks wait for each other, and no call of theirs can end
};

// The last known call of one rank.
struct RankCall {
  int rank = -1;
  std::uint64_t sequence = 0;  // 0: it has made no call yet
  std::string call;            // "all_reduce #17 sum float32[1024]"

  bool operator==(const RankCall&) const = default;
};

// A value: the facts of an error as fields. Unknown facts are empty or -1.
struct Status {
  ErrorCode code = ErrorCode::kSystem;
  std::string message = {};
  std::string communicator = {};  // its name, "world" for the first
  std::uint64_t sequence = 0;     // the call's number on that communicator, from 1
  std::string operation = {};     // "all_reduce"
  int rank = -1;                  // the rank that reports
  int peer = -1;                  // the rank that caused it
  std::string host = {};
  std::string reason = {};  // of a refused argument: the message without the call's name
};

// The base of all errors.
class Error : public std::runtime_error {
 public:
  explicit Error(Status status) : std::runtime_error(status.message), status_(std::move(status)) {}
  const Status& status() const noexcept { return status_; }
  ErrorCode code() const noexcept { return status_.code; }

 private:
  Status status_;
};

// An argument was refused on this rank, or on another one that the message names. The call had no
// effect. The communicator stays usable.
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
  int rank() const noexcept { return rank_; }  // in the communicator
  int pid() const noexcept { return pid_; }    // on its host
  // the signal that ended the process; 0: none, or unknown
  int signal() const noexcept { return signal_; }

 private:
  int rank_, pid_, signal_;
};

// A call did not finish before its deadline.
class DeadlineExceeded : public Error {
 public:
  DeadlineExceeded(Status status, std::vector<int> missing, std::vector<RankCall> calls)
      : Error(std::move(status)), missing_(std::move(missing)), calls_(std::move(calls)) {}
  // Returns the ranks that had not arrived at the call, of the first 64 ranks.
  const std::vector<int>& missing() const noexcept { return missing_; }
  // Returns the last known call of each missing rank.
  const std::vector<RankCall>& calls() const noexcept { return calls_; }

 private:
  std::vector<int> missing_;
  std::vector<RankCall> calls_;
};

// Ranks of one host wait for each other in blocking calls on one communicator. No message is under
// way that could end one of these calls. Waiting longer would not help, so the error comes
// before the deadline. `missing` has the ranks that wait, of the first 64. `calls` has their last
// known calls.
class DeadlockError : public DeadlineExceeded {
 public:
  using DeadlineExceeded::DeadlineExceeded;
};

// Ranks of one communicator made different calls with the same sequence number.
class Mismatch : public Error {
 public:
  Mismatch(Status status, std::vector<RankCall> calls)
      : Error(std::move(status)), calls_(std::move(calls)) {}
  // Returns the calls that differ, for the first rank of each kind.
  const std::vector<RankCall>& calls() const noexcept { return calls_; }

 private:
  std::vector<RankCall> calls_;
};

// A rank called abort() or rebuild(), or gave up a call by Ctrl-C, by destroying a Work, or by
// close().
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
  // @param what The operation that failed.
  // @param error_number The value of errno.
  SystemError(const std::string& what, int error_number);
  int error_number() const noexcept { return error_number_; }

 private:
  int error_number_;
};

// A GPU, its driver or one of its libraries refused something, failed, or is missing.
class DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& message)
      : Error({.code = ErrorCode::kDevice, .message = message}) {}
  explicit DeviceError(Status status) : Error(std::move(status)) {}
};

}  // namespace hocket
