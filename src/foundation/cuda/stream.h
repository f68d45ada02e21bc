// Streams and events.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "foundation/base/deadline.h"
#include "foundation/cuda/context.h"

namespace hocket::cuda {

// A resource: a stream of its own, which the legacy default stream does not wait for. Any thread.
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

// A resource: a mark in a stream, without a time stamp unless wanted. One thread at a time.
class OwnedEvent {
 public:
  enum class Timing : bool { kOff, kOn };
  explicit OwnedEvent(std::shared_ptr<const DeviceContext> device, Timing timing = Timing::kOff);
  ~OwnedEvent();
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;

  Event get() const noexcept { return event_; }
  void record(Stream stream);
  // Whether all that was before the last `record` has ended. Throws where a kernel failed.
  bool passed() const;
  // Polls until then; false at the deadline.
  bool wait(base::Deadline deadline) const;
  // Of two with a time stamp that have both passed: what lay between them.
  std::chrono::nanoseconds since(const OwnedEvent& earlier) const;
  // Later work of `stream` waits for the mark.
  void hold(Stream stream) const;

 private:
  std::shared_ptr<const DeviceContext> device_;
  Event event_ = nullptr;
};

// A resource: until the end of the scope this thread may do what a capture of its own forbids
// (allocate, wait), as nothing of it belongs into a graph.
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

// The number of the stream that a handle stands for, which no other stream ever has. A handle is
// given to another stream once its own is destroyed, and that of the default stream of each thread
// stands for as many as there are threads. Absent: the driver does not say.
std::optional<std::uint64_t> number_of(const Driver& driver, Stream stream) noexcept;

// How a stream stands to capture into a graph.
enum class Capture { kNone, kActive, kBroken };
Capture capture_of(const Driver& driver, Stream stream);

// Whether all of a stream has ended. Throws where a kernel failed.
bool drained(const Driver& driver, Stream stream);
// Polls until then; false at the deadline.
bool drain(const Driver& driver, Stream stream, base::Deadline deadline);

}  // namespace hocket::cuda
