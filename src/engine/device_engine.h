// The interface of an engine for arrays in a GPU's memory. The engine enqueues work on a stream,
// and the GPU runs it without further help of the host.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/call.h"
#include "engine/engine.h"
#include "engine/gather.h"
#include "foundation/base/deadline.h"
#include "hocket/error.h"
#include "hocket/stream.h"

namespace hocket::engine {

// One message of an exchange: a set of messages that a rank enqueues together. A value.
struct DeviceMessage {
  enum class Way : std::uint8_t { kSend, kReceive };
  Way way = Way::kSend;
  int peer = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
};

// The functions by which an engine exchanges data with the other ranks at its first use. A value
// that is valid only during DeviceEngine::connect.
struct Introduction {
  Gather gather;
  // A waiting engine must call it repeatedly. It throws if the group has failed meanwhile.
  std::function<void()> look;
  base::Deadline deadline;
};

// Says that the engine is not available on this rank. The communicator then uses another engine,
// and logs no warning.
class NotOffered : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// An error that may be caused by the death of a peer. A library may notice a death before hocket
// does.
class MaybeLoss : public DeviceError {
 public:
  using DeviceError::DeviceError;
};
// The longest time for which hocket waits for news of a death after a MaybeLoss. Without news, the
// error itself ends the group.
inline constexpr auto kLossDoubt = std::chrono::seconds(1);

// A failure of work on the device, which no host function has returned. A value.
struct DeviceProblem {
  ErrorCode code = ErrorCode::kDevice;  // kDevice, kDeadlineExceeded or kAborted
  // For kDeadlineExceeded only. `missing` has one bit for each rank that had not arrived.
  // `of_messages` says whether the wait was for messages. `allowed` is the time limit.
  std::uint64_t missing = 0;
  bool of_messages = false;
  Duration allowed{};
  bool maybe_loss = false;  // for kDevice: see MaybeLoss
  std::string text;
};

// The state of an engine's call that waits for other ranks on the device. A value.
struct DeviceWait {
  std::uint32_t call = 0;  // the low bits of the call's number; 0: it has none
  std::uint32_t beat = 0;  // changes many times a second while the wait goes on
  bool operator==(const DeviceWait&) const = default;
};

// A resource: an engine's plan of one call. The caller keeps it as long as the call may be
// repeated. The engine must outlive it.
class DeviceSteps {
 public:
  virtual ~DeviceSteps() = default;
  // Enqueues the planned call, with the engine's current settings; see DeviceEngine::enqueue.
  virtual void enqueue(StreamRef stream) = 0;
};

// Carries the calls of a group on a GPU. A resource: each rank has one for each group. One thread
// at a time uses it, but any thread may call `problem` and `abort`. The device's context is current
// in every call. Only `connect` waits for the device. Failures are DeviceErrors.
class DeviceEngine {
 public:
  virtual ~DeviceEngine() = default;
  virtual std::string_view name() const noexcept = 0;

  // Like CollectiveEngine::score, for signatures whose `memory` is kCuda.
  virtual std::optional<Score> score(const Signature& signature) const noexcept = 0;

  // Exchanges data with the other ranks before the first call that the engine carries. All ranks
  // call it in the same call of the group. Throws NotOffered if something that the engine needs is
  // missing.
  virtual void connect(const Introduction& introduction) = 0;

  // Enqueues the call on the stream. The calls of a group have the same order on all ranks, and run
  // in this order on the device. If the caller changes streams, it makes the new stream wait for
  // the old one.
  virtual void enqueue(const Call& call, StreamRef stream) = 0;

  // Returns a plan by which the caller can enqueue the same call many times. Null: the engine makes
  // no plans; use `enqueue`. Called after `connect`. `outs` has the `out` of each rank, by rank, as
  // mapped on this rank, if `out` is symmetric. The engine may write to them. Otherwise `outs` is
  // empty.
  virtual std::unique_ptr<DeviceSteps> steps_of(const Call& call,
                                                std::span<std::byte* const> outs) {
    static_cast<void>(call);
    static_cast<void>(outs);
    return nullptr;
  }

  // Returns whether the engine carries messages. `exchange` then enqueues several messages, which
  // make progress together, as in a group of NCCL.
  virtual bool has_messages() const noexcept { return false; }
  virtual void exchange(std::span<const DeviceMessage> messages, StreamRef stream) {
    static_cast<void>(messages);
    static_cast<void>(stream);
  }

  // Returns whether the engine's kernels wait for kernels of other ranks. These kernels must then
  // run at the same time.
  virtual bool meets_on_device() const noexcept { return false; }

  // Returns whether a call returns only after it has ended on the device. Such calls cannot be
  // captured into a graph, and `abort` ends them too.
  virtual bool returns_when_done() const noexcept { return false; }

  // Sets the time limit of later calls, from their start on the device. Returns whether the engine
  // enforces the limit. If not, the communicator enforces it. `sequence` is the number of the next
  // call. 0: the call has no number, or a graph may replay it.
  virtual bool keeps_time(Duration allowed, std::uint64_t sequence) noexcept {
    static_cast<void>(allowed);
    static_cast<void>(sequence);
    return false;
  }
  // Returns the latest known wait on the device, which may have ended. Absent: no wait is known.
  // Only engines that enforce time limits report waits. It is as cheap as `problem`.
  virtual std::optional<DeviceWait> waits() noexcept { return std::nullopt; }

  // Returns a problem that has occurred. Absent: none. It is cheap. Any thread may call it at any
  // time.
  virtual std::optional<DeviceProblem> problem() noexcept { return std::nullopt; }

  // Makes the work in progress on the device end soon, without the help of other ranks. Later calls
  // of `abort` do nothing. Any thread may call it.
  virtual void abort() noexcept = 0;
  // Returns whether `abort` lets work finish that no longer needs a peer. The communicator then
  // aborts as soon as a peer is lost, and asks `problem` whether this ended a call.
  virtual bool aborts_gently() const noexcept { return false; }
};

}  // namespace hocket::engine
