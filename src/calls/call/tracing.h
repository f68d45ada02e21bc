// Writes a communicator's calls into the trace and the audit of its rank, and counts them for
// metrics.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "calls/call/auditing.h"
#include "calls/call/membership.h"
#include "engine/call.h"
#include "engine/point_to_point.h"
#include "hocket/communicator.h"
#include "hocket/work.h"
#include "monitoring/live/meter.h"
#include "monitoring/observe/trace_file.h"

namespace hocket::call {

// Runs `part`, and records `traced` as failed if it throws.
template <typename Traced, typename Part>
void trace_during(Traced& traced, Part&& part) {
  try {
    part();
  } catch (...) {
    traced.end(true);
    throw;
  }
  traced.end(false);
}

// A resource: a message in progress, which is traced and counted until this object ends. It is
// audited only when `end` reports success, because its array may be read only then. Must not
// outlive its communicator. Empty: does nothing.
class TracedMessage {
 public:
  TracedMessage() noexcept = default;
  TracedMessage(observe::Span span,
                live::Counted counted,
                Auditing* receiving,
                const engine::Envelope& from,
                ConstArrayView out)
      : traced_(std::make_unique<Traced>(
            Traced{std::move(span), std::move(counted), receiving, from, out})) {}

  // Sets the real sender of a receive, which may accept any source and tag. The message may be
  // shorter than the array.
  void set_sender(const Received& received) noexcept {
    if (traced_) traced_->set_sender(received);
  }
  void end(bool failed) noexcept {
    if (traced_) traced_->end(failed);
  }

 private:
  struct Traced {
    observe::Span span;
    live::Counted counted;
    Auditing* receiving = nullptr;  // null: the message is sent, or not audited
    engine::Envelope from;
    ConstArrayView out;

    void set_sender(const Received& received) noexcept;
    void end(bool failed) noexcept;
  };
  std::unique_ptr<Traced> traced_;
};

// A resource: work that is being put on a GPU's stream. Empty: it is not traced or counted.
class TracedLaunch {
 public:
  TracedLaunch() noexcept = default;
  TracedLaunch(observe::Span span, live::Counted counted) noexcept
      : span_(std::move(span)), counted_(std::move(counted)) {}
  void end(bool failed) noexcept {
    span_.end(failed);
    counted_.end(failed);
  }

 private:
  observe::Span span_;
  live::Counted counted_;
};
// Counts calls that begin and end together, such as messages put on a stream at once.
class CountedTogether {
 public:
  void add(live::Counted one) { counted_.push_back(std::move(one)); }
  void end(bool failed) noexcept {
    for (live::Counted& each : counted_) each.end(failed);
  }
  void end_after(std::chrono::nanoseconds time) noexcept {
    for (live::Counted& each : counted_) each.end_after(time);
  }

 private:
  std::vector<live::Counted> counted_;
};

// A resource, used in the communicator's turn. It does nothing unless a trace, an audit or metrics
// are wanted.
class Tracing {
 public:
  Tracing(std::shared_ptr<observe::TraceFile> file,
          std::shared_ptr<observe::AuditFile> audit,
          const Membership& membership,
          control::HostMemory& memory);
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  ~Tracing();

  bool is_on() const noexcept { return is_on_; }
  bool audits() const noexcept { return auditing_.is_on(); }
  // Sets the audit that later calls are written to; null ends the audit.
  void audit_in(std::shared_ptr<observe::AuditFile> audit) noexcept;

  // Begins the collective in progress; there is one at a time. `shown` is the call as error texts
  // name it.
  void begin(const engine::Call& call,
             const engine::Signature& shown,
             std::string_view engine,
             Arrays arrays);
  void end(bool failed) noexcept {
    counted_.end(failed);
    auditing_.end(failed);
    collective_.end(failed);
  }
  // Says that the input of a call with Arrays::kComing has arrived.
  void arrived() noexcept { auditing_.arrived(); }

  // Traces putting a call on a GPU's stream.
  TracedLaunch device(const engine::Signature& call,
                      std::uint64_t sequence,
                      std::string_view engine) const;
  // True if metrics need the run time of calls on streams.
  bool times_streams() const noexcept { return meter_.is_on(); }
  // Returns the counter of a call on a stream; the caller measures its time.
  CountedTogether on_stream(const engine::Signature& call, std::string_view engine) const;
  // Adds messages of GPUs' arrays to `counted`; `engine` carries the messages.
  void messages(CountedTogether& counted,
                LiveTimed timed,
                std::span<const Outgoing> outgoing,
                std::span<const Incoming> incoming,
                std::string_view engine) const;
  // Begin the trace of a message.
  TracedMessage sends(const engine::Envelope& to, ConstArrayView in) const {
    return is_on_ ? message(to, true, in) : TracedMessage();
  }
  TracedMessage receives(const engine::Envelope& from, ConstArrayView out) const {
    return is_on_ ? message(from, false, out) : TracedMessage();
  }

 private:
  TracedMessage message(const engine::Envelope& envelope, bool sends, ConstArrayView array) const;
  observe::TracedBegin describe(const engine::Signature& signature, std::uint64_t sequence) const;

  bool is_on_ = false;  // read in each call
  const std::shared_ptr<observe::TraceFile> file_;
  const int size_;
  std::uint32_t group_ = 0;
  observe::Span collective_;
  mutable live::Meter meter_;
  live::Counted counted_;
  mutable Auditing auditing_;
};

}  // namespace hocket::call
