// Counts the calls and messages of one group of one rank, and takes their time, where the job keeps
// metrics.
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
#include "monitoring/live/desk_layout.h"

namespace hocket::live {

// A resource: a call or a message under way, in the communicator's turn. It is counted when it is
// told to have ended, and never without, as it may go in a forked child, where its row is not.
// Empty: nothing is counted.
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
  // Well, and it took so long, as somebody else has measured.
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
  bool is_on() const noexcept { return desk_ != nullptr; }

  Counted begin(const What& what) noexcept;

 private:
  // The row of a kind, and the engine that it is of.
  struct Known {
    const char* engine = nullptr;
    MeterRow* row = nullptr;
  };

  DeskLayout* const desk_;  // null: nothing is counted
  const std::string group_;
  static constexpr std::size_t kTimed = 3;  // what LiveTimed tells apart
  std::unique_ptr<std::array<Known, kTimed * engine::kKindCount>>
      known_;  // null: nothing is counted
};

}  // namespace hocket::live
