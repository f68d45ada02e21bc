#include "foundation/base/deadline.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "foundation/base/beats.h"
#include "foundation/base/limit.h"
#include "hocket/error.h"

namespace hocket::base {

Deadline Deadline::in(Duration after) noexcept { return after_time(Clock::now(), after); }

Deadline Deadline::in_about(Duration after) noexcept {
  return after_time(Clock::time_point(Clock::duration(coarse_run_time() + kCoarse)), after);
}

Deadline Deadline::after_time(Clock::time_point time, Duration after) noexcept {
  if (after >= Clock::time_point::max() - time) return never();
  return Deadline(time + std::max(after, Duration::zero()));
}

Duration Deadline::left() const noexcept {
  if (is_never()) return kForever;
  return std::max(Duration(when_ - Clock::now()), Duration::zero());
}

int Deadline::poll_timeout_ms() const noexcept {
  if (is_never()) return -1;
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left()).count();
  return static_cast<int>(std::min<long long>(milliseconds, INT_MAX));
}

std::string in_seconds(Duration duration) {
  if (duration == kForever) return "ever";
  const double seconds = std::chrono::duration<double>(duration).count();
  return seconds < 100 ? fmt::format("{:.3g} s", seconds) : fmt::format("{:.0f} s", seconds);
}

void require_limit(const std::optional<Duration>& limit, const char* name) {
  if (!limit || *limit > Duration::zero()) return;
  throw InvalidArgument(fmt::format("{} is {}, expected more than 0 s", name, in_seconds(*limit)));
}

void require_patience(Duration patience, const char* name) {
  if (patience >= Duration::zero()) return;
  throw InvalidArgument(fmt::format("{} is {}, expected 0 s or more", name, in_seconds(patience)));
}

}  // namespace hocket::base
