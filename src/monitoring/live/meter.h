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
#include "membership/control/host/memory.h"
#include "monitoring/live/board_layout.h"

namespace hocket::live {

// A resource: a call or message in progress. Empty if nothing is counted. Use it while no other
// thread uses the communicator. Only `end` counts. The destructor does not, because a forked child
// does not have the row.
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
  // Counts a call that succeeded and took `time`.
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

// Finds the rows of one group's calls. A resource; use it while no other thread uses the
// communicator.
class Meter {
 public:
  // A call or message to count. A value; `engine` lives as long as the engine.
  struct What {
    engine::Kind kind = engine::Kind::kNone;
    std::string_view engine = "";
    std::size_t bytes = 0;
    LiveTimed timed = LiveTimed::kOnHost;
  };

  Meter(control::HostMemory& memory, std::string group);
  bool is_on() const noexcept { return board_ != nullptr; }

  Counted begin(const What& what) noexcept;

 private:
  // The last row used for a kind, and its engine.
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
