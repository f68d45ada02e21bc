// The interface of an engine for arrays in a GPU's memory. It enqueues work on a stream, where the
// work runs by itself.
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

// One message of a group's exchange on a stream. A value.
struct DeviceMessage {
  enum class Way : std::uint8_t { kSend, kReceive };
  Way way = Way::kSend;
  int peer = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
};

// The means by which an engine reaches the other ranks once, at its first use. A value that is
// valid during the call.
struct Introduction {
  Gather gather;
  // Must be called while waiting. It throws if the group has failed meanwhile.
  std::function<void()> look;
  base::Deadline deadline;
};

// The engine is not available, and no warning is needed.
class NotOffered : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// An error that a peer's death may have caused. A library may notice a death before hocket does.
class MaybeLoss : public DeviceError {
 public:
  using DeviceError::DeviceError;
};
// The time in which such a death may still become known.
inline constexpr auto kLossDoubt = std::chrono::seconds(1);

// A problem that occurred on the device, without a call of the host. A value.
struct DeviceProblem {
  ErrorCode code = ErrorCode::kDevice;  // kDevice, kDeadlineExceeded or kAborted
  // For kDeadlineExceeded: one bit for each rank that had not arrived, the kind of the wait, and
  // its limit.
  std::uint64_t missing = 0;
  bool of_messages = false;
  Duration allowed{};
  bool maybe_loss = false;  // for kDevice: see MaybeLoss
  std::string text;
};

// The state of an engine's call that waits for other ranks on the device. A value.
struct DeviceWait {
  std::uint32_t call = 0;  // the low bits of its number; 0: it has none
  std::uint32_t beat = 0;  // changes many times a second while the wait goes on
  bool operator==(const DeviceWait&) const = default;
};

// A resource: an engine's plan of one call. The caller keeps it as long as the call may be
// repeated. The engine must outlive it.
class DeviceSteps {
 public:
  virtual ~DeviceSteps() = default;
  // See DeviceEngine::enqueue. Enqueues the planned call, with the engine's current settings.
  virtual void enqueue(StreamRef stream) = 0;
};

// A resource, one for each rank and group. One thread at a time uses it, except `problem` and
// `abort`. The device's context is current in every call. Only `connect` waits for the device.
// Failures are DeviceErrors.
class DeviceEngine {
 public:
  virtual ~DeviceEngine() = default;
  virtual std::string_view name() const noexcept = 0;

  // Does the same as CollectiveEngine::score. signature.memory is kCuda.
  virtual std::optional<Score> score(const Signature& signature) const noexcept = 0;

  // Called before the first call that the engine carries, on all ranks in the same call. Throws
  // NotOffered if something that it needs is missing.
  virtual void connect(const Introduction& introduction) = 0;

  // Enqueues the call on the stream. Calls of a group have one order on all ranks, also on the
  // device. A caller that changes streams orders them.
  virtual void enqueue(const Call& call, StreamRef stream) = 0;

  // Returns a plan that enqueues the call repeatedly, for engines that plan a call first. Null: use
  // `enqueue`. Called after `connect`. If out is symmetric, `outs` has the outs of all ranks, by
  // rank, as mapped here, and the engine may write to them. Otherwise it is empty.
  virtual std::unique_ptr<DeviceSteps> steps_of(const Call& call,
                                                std::span<std::byte* const> outs) {
    static_cast<void>(call);
    static_cast<void>(outs);
    return nullptr;
  }

  // Returns whether it carries messages. Then `exchange` enqueues messages, which make progress
  // together.
  virtual bool has_messages() const noexcept { return false; }
  virtual void exchange(std::span<const DeviceMessage> messages, StreamRef stream) {
    static_cast<void>(messages);
    static_cast<void>(stream);
  }

  // Returns whether its kernels wait for those of other ranks, so that they must run at the same
  // time.
  virtual bool meets_on_device() const noexcept { return false; }

  // Returns whether calls return only after they have ended. Then they cannot be captured into a
  // graph, and `abort` ends them too.
  virtual bool returns_when_done() const noexcept { return false; }

  // Sets the time limit of later calls, from their start on the device. Returns whether the engine
  // enforces it. If not, the communicator does. `sequence` is the number of the next call. 0: it
  // has none, or may be replayed.
  virtual bool keeps_time(Duration allowed, std::uint64_t sequence) noexcept {
    static_cast<void>(allowed);
    static_cast<void>(sequence);
    return false;
  }
  // Returns the latest known wait on the device, which may have ended. Absent: there was none yet.
  // It is for engines that enforce time limits, and as cheap as `problem`.
  virtual std::optional<DeviceWait> waits() noexcept { return std::nullopt; }

  // Returns a problem that has occurred. Absent: none. It is cheap, and any thread may call it at
  // any time.
  virtual std::optional<DeviceProblem> problem() noexcept { return std::nullopt; }

  // Ends the work in progress on the device shortly, without the help of other ranks. Later calls
  // do nothing. Any thread may call it.
  virtual void abort() noexcept = 0;
  // Returns whether `abort` spares work that needs no more peers. Then the communicator aborts as
  // soon as a peer is lost, and `problem` tells whether that ended a call.
  virtual bool aborts_gently() const noexcept { return false; }
};

}  // namespace hocket::engine
