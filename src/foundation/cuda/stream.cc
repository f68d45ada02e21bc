#include "foundation/cuda/stream.h"

#include <cmath>

#include "foundation/base/poll.h"
#include "hocket/error.h"

namespace hocket::cuda {
namespace {

// Work that ends soon is the common case, so the first polls follow each other without a pause.
constexpr int kEagerPolls = 2000;

template <typename Ended>
bool poll(const Ended& ended, base::Deadline deadline) {
  return base::poll_until(ended, deadline, std::chrono::microseconds(50), kEagerPolls);
}

}  // namespace

OwnedStream::OwnedStream(std::shared_ptr<const DeviceContext> device) : device_(std::move(device)) {
  const DeviceGuard guard(*device_);
  const Driver& driver = device_->driver();
  check(driver, driver.stream_create(&stream_, kStreamNonBlocking), "make a stream");
}

OwnedStream::~OwnedStream() {
  const DeviceGuard guard(*device_);
  device_->driver().stream_destroy(stream_);
}

OwnedEvent::OwnedEvent(std::shared_ptr<const DeviceContext> device, Timing timing)
    : device_(std::move(device)) {
  const DeviceGuard guard(*device_);
  const Driver& driver = device_->driver();
  const unsigned flags = timing == Timing::kOff ? kEventDisableTiming : 0;
  check(driver, driver.event_create(&event_, flags), "make an event");
}

OwnedEvent::~OwnedEvent() {
  const DeviceGuard guard(*device_);
  device_->driver().event_destroy(event_);
}

void OwnedEvent::record(Stream stream) {
  const Driver& driver = device_->driver();
  check(driver, driver.event_record(event_, stream), "record an event");
}

// Makes the query outside any capture, of this thread or another one: a capture would forbid it.
bool OwnedEvent::passed() const {
  const DeviceGuard guard(*device_);
  const Driver& driver = device_->driver();
  const OutsideCapture outside(driver);
  const Result result = driver.event_query(event_);
  if (result == Result::kNotReady) return false;
  check(driver, result, "go on: work on the GPU has failed");
  return true;
}

bool OwnedEvent::wait(base::Deadline deadline) const {
  return poll([this] { return passed(); }, deadline);
}

std::chrono::nanoseconds OwnedEvent::since(const OwnedEvent& earlier) const {
  const DeviceGuard guard(*device_);
  const Driver& driver = device_->driver();
  float milliseconds = 0;
  check(driver,
        driver.event_elapsed_time(&milliseconds, earlier.event_, event_),
        "read the time between two events");
  return std::chrono::nanoseconds(std::llround(1e6 * static_cast<double>(milliseconds)));
}

void OwnedEvent::hold(Stream stream) const {
  const Driver& driver = device_->driver();
  check(driver, driver.stream_wait_event(stream, event_, 0), "make a stream wait for an event");
}

std::optional<std::uint64_t> number_of(const Driver& driver, Stream stream) noexcept {
  unsigned long long number = 0;
  if (driver.stream_get_id == nullptr ||
      driver.stream_get_id(stream, &number) != Result::kSuccess) {
    return std::nullopt;
  }
  return number;
}

Capture capture_of(const Driver& driver, Stream stream) {
  CaptureStatus status = CaptureStatus::kNone;
  const Result result = driver.stream_is_capturing(stream, &status);
  // `stream` is the legacy default stream, while another stream is captured in the strictest mode.
  if (result == Result::kCaptureImplicit) return Capture::kBroken;
  if (result == Result::kInvalidHandle || result == Result::kInvalidContext) {
    throw InvalidArgument("stream is not one of this GPU's; is its handle a CUstream?");
  }
  check(driver, result, "use the stream");
  switch (status) {
    case CaptureStatus::kNone:
      return Capture::kNone;
    case CaptureStatus::kActive:
      return Capture::kActive;
    case CaptureStatus::kInvalidated:
      break;
  }
  return Capture::kBroken;
}

bool drained(const Driver& driver, Stream stream) {
  const OutsideCapture outside(driver);
  const Result result = driver.stream_query(stream);
  if (result == Result::kNotReady) return false;
  check(driver, result, "go on: work on the GPU has failed");
  return true;
}

bool drain(const Driver& driver, Stream stream, base::Deadline deadline) {
  return poll([&] { return drained(driver, stream); }, deadline);
}

}  // namespace hocket::cuda
