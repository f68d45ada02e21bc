// The first cut once more, for arrays in a GPU's memory: work is put on a stream, and goes on there
// by itself.
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

// One message of a group that is put on a stream at once. A value.
struct DeviceMessage {
  enum class Way : std::uint8_t { kSend, kReceive };
  Way way = Way::kSend;
  int peer = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
};

// What an engine needs of the others, once, when it is first wanted. A value; it lasts as long as
// the call.
struct Introduction {
  Gather gather;
  // To be called while waiting: throws where the group has failed meanwhile.
  std::function<void()> look;
  base::Deadline deadline;
};

// Why an engine cannot be had, where nobody has to be warned of that.
class NotOffered : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// What may come of a peer's death that nobody knows of yet: a library hears of it first.
class MaybeLoss : public DeviceError {
 public:
  using DeviceError::DeviceError;
};
// For how long a death may then still become known.
inline constexpr auto kLossDoubt = std::chrono::seconds(1);

// What has gone wrong on the device by itself. A value.
struct DeviceProblem {
  ErrorCode code = ErrorCode::kDevice;  // kDevice, kDeadlineExceeded or kAborted
  // kDeadlineExceeded: a bit a rank that had not come; what was waited for, and how long.
  std::uint64_t missing = 0;
  bool of_messages = false;
  Duration allowed{};
  bool maybe_loss = false;  // kDevice: see MaybeLoss
  std::string text;
};

// That a call of an engine waits for other ranks on the device. A value.
struct DeviceWait {
  std::uint32_t call = 0;  // the low bits of its number; 0: it has none
  std::uint32_t beat = 0;  // changes, many times a second, while it goes on waiting
  bool operator==(const DeviceWait&) const = default;
};

// A resource: one call as an engine has planned it, kept by whoever calls for as long as the call
// may come again. The engine outlives its use.
class DeviceSteps {
 public:
  virtual ~DeviceSteps() = default;
  // See DeviceEngine::enqueue: puts that call on the stream, with what the engine was told since.
  virtual void enqueue(StreamRef stream) = 0;
};

// A resource, one a rank and group, used by one thread at a time but for `problem` and `abort`. The
// device's context is current in every call. Nothing waits for the device, but `connect`. Failures
// are DeviceErrors.
class DeviceEngine {
 public:
  virtual ~DeviceEngine() = default;
  virtual std::string_view name() const noexcept = 0;

  // As CollectiveEngine::score; signature.memory is kCuda.
  virtual std::optional<Score> score(const Signature& signature) const noexcept = 0;

  // Before the first call that it carries: on all ranks, in the same call. Throws NotOffered where
  // what it needs is not here.
  virtual void connect(const Introduction& introduction) = 0;

  // Puts the call on the stream. Calls of a group follow each other in one order on all ranks, also
  // on the device: whoever changes streams orders them.
  virtual void enqueue(const Call& call, StreamRef stream) = 0;

  // What puts the call there as often as it comes, for engines that plan it first; null: `enqueue`
  // does. After `connect`. `outs`: where out is symmetric, the ranks' outs, by rank, as mapped
  // here, to which the engine may write; else empty.
  virtual std::unique_ptr<DeviceSteps> steps_of(const Call& call,
                                                std::span<std::byte* const> outs) {
    static_cast<void>(call);
    static_cast<void>(outs);
    return nullptr;
  }

  // Whether it carries messages; then `exchange` puts them on the stream, to progress together.
  virtual bool has_messages() const noexcept { return false; }
  virtual void exchange(std::span<const DeviceMessage> messages, StreamRef stream) {
    static_cast<void>(messages);
    static_cast<void>(stream);
  }

  // Whether its kernels wait for those of other ranks, so that these have to run at the same time.
  virtual bool meets_on_device() const noexcept { return false; }

  // Whether calls return only when they have ended, well or not. Then nothing of them can become
  // part of a graph, and `abort` ends them, too.
  virtual bool returns_when_done() const noexcept { return false; }

  // How long calls enqueued from now on may take from their start on the device, for engines that
  // watch that themselves; the communicator does it for those that say no. `sequence`: the number
  // of what comes next; 0: it has none, or may be replayed.
  virtual bool keeps_time(Duration allowed, std::uint64_t sequence) noexcept {
    static_cast<void>(allowed);
    static_cast<void>(sequence);
    return false;
  }
  // What engines that keep time have last been told of a wait on the device, which need not last;
  // absent: nothing so far. Cheap, as `problem`.
  virtual std::optional<DeviceWait> waits() noexcept { return std::nullopt; }

  // What has gone wrong since; absent: nothing. Cheap; asked now and then, from any thread.
  virtual std::optional<DeviceProblem> problem() noexcept { return std::nullopt; }

  // Ends what is under way on the device, soon, and without anybody's cooperation; later calls do
  // nothing. Any thread.
  virtual void abort() noexcept = 0;
  // Whether that spares what needs no peer any more. Then it is done as soon as a peer is lost, and
  // `problem` tells whether something was ended by it.
  virtual bool aborts_gently() const noexcept { return false; }
};

}  // namespace hocket::engine
