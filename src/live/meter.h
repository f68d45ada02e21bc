// Counts the calls of one group of one rank, and takes their time, where the job keeps metrics.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "control/host.h"
#include "engine/kinds.h"
#include "live/desk_layout.h"

namespace hocket::live {

// A resource of its group, in the communicator's turn: one call is under way at a time.
class Meter {
 public:
  Meter(control::HostControl& host, std::string group);
  bool is_on() const noexcept { return desk_ != nullptr; }

  void begin(engine::Kind kind, std::string_view engine, std::size_t bytes) noexcept;
  // Ends the one that has begun, if any.
  void end(bool failed) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  // The row of a kind, and the engine that it is of: one name lives as long as its engine.
  struct Known {
    const char* engine = nullptr;
    MeterRow* row = nullptr;
  };

  DeskLayout* const desk_;  // null: nothing is counted
  const std::string group_;
  std::array<Known, engine::kKindCount> known_{};
  MeterRow* under_way_ = nullptr;
  std::size_t bytes_ = 0;
  Clock::time_point begun_;
};

}  // namespace hocket::live
