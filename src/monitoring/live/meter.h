// Counts and times the calls and messages of one group of one rank, if the job keeps metrics.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/kinds.h"
#include "membership/control/host.h"
#include "monitoring/live/board_layout.h"

namespace hocket::live {

// A resource: a call or message in progress, in the communicator's turn. Only `end` counts it, not
// the destructor: in a forked child the row does not exist. Empty: nothing is counted.
class Counted {
 public:
  using Clock = std::chrono::steady_clock;
  Counted() noexcept = default;
  Counted(MeterRow* row, std::size_t bytes) noexcept
      : row_(row), bytes_(bytes), begun_(Clock::now()) {}
  Counted(Counted&& other) noexcept
      : row_(std::exchange(other.row_, nullptr)), bytes_(other.bytes_), begun_(other.begun_) {}
  Counted& operator=(Counted&& other) noexcept {
    row_ = std::exchange(other.row_, nullptr);
    bytes_ = other.bytes_;
    begun_ = other.begun_;
    return *this;
  }

  void set_bytes(std::size_t bytes) noexcept { bytes_ = bytes; }
  void end(bool failed) noexcept {
    if (row_ != nullptr) add(failed);
  }
  // The call succeeded, and took `time`, as measured elsewhere.
  void end_after(std::chrono::nanoseconds time) noexcept {
    if (row_ != nullptr) add(time);
  }

 private:
  void add(bool failed) noexcept;
  void add(std::chrono::nanoseconds time) noexcept;

  MeterRow* row_ = nullptr;
  std::size_t bytes_ = 0;
  Clock::time_point begun_ = {};
};

// A resource of its group, in the communicator's turn.
class Meter {
 public:
  // A value; the engine's name lives as long as the engine.
  struct What {
    engine::Kind kind = engine::Kind::kNone;
    std::string_view engine = "";
    std::size_t bytes = 0;
    LiveTimed timed = LiveTimed::kOnHost;
  };

  Meter(control::HostControl& host, std::string group);
  bool is_on() const noexcept { return board_ != nullptr; }

  Counted begin(const What& what) noexcept;

 private:
  // The row of a kind, and the engine that it is of.
  struct Known {
    const char* engine = nullptr;
    MeterRow* row = nullptr;
  };

  BoardLayout* const board_;  // null: nothing is counted
  const std::string group_;
  static constexpr std::size_t kTimed = 3;  // number of values of LiveTimed
  std::unique_ptr<std::array<Known, kTimed * engine::kKindCount>>
      known_;  // null: nothing is counted
};

}  // namespace hocket::live
