// What a communicator writes into the trace of its rank, and counts for metrics.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "call/membership.h"
#include "engine/call.h"
#include "engine/point_to_point.h"
#include "live/meter.h"
#include "observe/trace_file.h"

namespace hocket::call {

// A resource, used in the communicator's turn. Does nothing where neither is wanted.
class Tracing {
 public:
  Tracing(std::shared_ptr<observe::TraceFile> file,
          const Membership& membership,
          control::HostControl& host);
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  ~Tracing();

  bool is_on() const noexcept { return is_on_; }

  // The collective under way: there is one at a time. `shown`: what it is called.
  void begin(const engine::Call& call, const engine::Signature& shown, std::string_view engine);
  void end(bool failed) noexcept {
    meter_.end(failed);
    collective_.end(failed);
  }

  // The putting of a call on a GPU's stream.
  observe::Span device(const engine::Signature& call,
                       std::uint64_t sequence,
                       std::string_view engine) const;
  observe::Span message(const engine::Envelope& envelope, bool sends) const;

 private:
  observe::TracedBegin describe(const engine::Signature& signature, std::uint64_t sequence) const;

  const std::shared_ptr<observe::TraceFile> file_;
  const int size_;
  std::uint32_t group_ = 0;
  observe::Span collective_;
  live::Meter meter_;
  const bool is_on_;
};

}  // namespace hocket::call
