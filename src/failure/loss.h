// Why a rank takes part no longer.
#pragma once

#include <optional>

#include "control/cause.h"
#include "control/succession.h"

namespace hocket::failure {

// A value.
struct Loss {
  control::Cause cause;
  bool sudden;  // it had no time to finish what it had begun
};

// Absent: `member` is there.
inline std::optional<Loss> loss_of(const control::GroupControl& group,
                                   const control::Succession& succession,
                                   int member) noexcept {
  using control::Cause;
  using control::RankState;
  switch (group.host().state(group.host_rank(member))) {
    case RankState::kAbsent:
    case RankState::kAlive:
      if (succession.has_come(member)) return Loss{Cause::kRebuild, false};
      if (succession.has_closed(member)) return Loss{Cause::kClosed, false};
      return std::nullopt;
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
