// Why a rank takes part no longer.
#pragma once

#include <optional>

#include "control/cause.h"
#include "control/host.h"

namespace hocket::failure {

// A value.
struct Loss {
  control::Cause cause;
  bool sudden;  // it had no time to finish what it had begun
};

// Absent: it is there. `rebuilds`: it has called for the next epoch.
inline std::optional<Loss> loss_of(control::RankState state, bool rebuilds) noexcept {
  using control::Cause;
  using control::RankState;
  switch (state) {
    case RankState::kAbsent:
    case RankState::kAlive:
      if (!rebuilds) return std::nullopt;
      return Loss{Cause::kRebuild, false};
    case RankState::kLeft:
      return Loss{Cause::kLeft, false};
    case RankState::kSilent:
      return Loss{Cause::kSilent, true};
    case RankState::kCut:
      return Loss{Cause::kCut, true};
    case RankState::kDied:
      break;
  }
  return Loss{Cause::kDied, true};
}

}  // namespace hocket::failure
