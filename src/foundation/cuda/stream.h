// Streams and events of a GPU, and graph capture.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "foundation/base/deadline.h"
#include "foundation/cuda/context.h"

namespace hocket::cuda {

// A resource: a stream that does not synchronize with the legacy default stream. Any thread may use
// it.
class OwnedStream {
 public:
  explicit OwnedStream(std::shared_ptr<const DeviceContext> device);
  ~OwnedStream();
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  Stream get() const noexcept { return stream_; }

 private:
  std::shared_ptr<const DeviceContext> device_;
  Stream stream_ = nullptr;
};

// A resource: an event, optionally with a time stamp. One thread at a time uses it.
class OwnedEvent {
 public:
  enum class Timing : bool { kOff, kOn };
  explicit OwnedEvent(std::shared_ptr<const DeviceContext> device, Timing timing = Timing::kOff);
  ~OwnedEvent();
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;

  Event get() const noexcept { return event_; }
  void record(Stream stream);
  // Returns whether all work has ended that was enqueued before the last `record`. Throws if a
  // kernel failed.
  bool passed() const;
  // Polls until `passed` is true. Returns false at the deadline.
  bool wait(base::Deadline deadline) const;
  // Returns the time from `earlier` to this event. Both must have time stamps and must have passed.
  std::chrono::nanoseconds since(const OwnedEvent& earlier) const;
  // Makes later work of `stream` wait for the event.
  void hold(Stream stream) const;

 private:
  std::shared_ptr<const DeviceContext> device_;
  Event event_ = nullptr;
};

// A resource: until the end of the scope, this thread may make calls that its own capture forbids,
// such as allocations and waits. These calls do not become part of a graph.
class OutsideCapture {
 public:
  explicit OutsideCapture(const Driver& driver) noexcept : driver_(driver) {
    driver_.thread_exchange_stream_capture_mode(&mode_);
  }
  ~OutsideCapture() { driver_.thread_exchange_stream_capture_mode(&mode_); }
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;

 private:
  const Driver& driver_;
  CaptureMode mode_ = CaptureMode::kRelaxed;
};

// Returns the unique number of a stream. A handle is not unique: the driver may reuse it after its
// stream is destroyed, and the handle of the per-thread default stream means a different stream in
// each thread. Absent: the driver does not know such numbers.
std::optional<std::uint64_t> number_of(const Driver& driver, Stream stream) noexcept;

// Whether a stream is captured into a graph: not at all, right now, or in a capture that has
// failed.
enum class Capture { kNone, kActive, kBroken };
Capture capture_of(const Driver& driver, Stream stream);

// Returns whether all work of a stream has ended. Throws if a kernel failed.
bool drained(const Driver& driver, Stream stream);
// Polls until all work of a stream has ended. Returns false at the deadline.
bool drain(const Driver& driver, Stream stream, base::Deadline deadline);

}  // namespace hocket::cuda
