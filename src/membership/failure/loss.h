// Why a rank takes part no longer.
#pragma once

#include <cstdint>
#include <optional>

#include "membership/control/cause.h"
#include "membership/control/succession.h"

namespace hocket::failure {

// A value.
struct Loss {
  // The kinds of losses in the order of blame: the first kind before the others.
  enum class Blame : std::uint8_t { kItself, kAfterALoss, kInOrder };
  control::Cause cause;
  Blame blame;

  // Work that it had begun may be unfinished.
  bool sudden() const noexcept { return blame != Blame::kInOrder; }
};

inline Loss::Blame blame_of(control::HostControl::Ending ending) noexcept {
  using Ending = control::HostControl::Ending;
  if (ending == Ending::kInOrder) return Loss::Blame::kInOrder;
  return ending == Ending::kAfterALoss ? Loss::Blame::kAfterALoss : Loss::Blame::kItself;
}

// Absent: `member` is there.
inline std::optional<Loss> loss_of(const control::GroupControl& group,
                                   const control::Succession& succession,
                                   int member) noexcept {
  using control::Cause;
  using control::RankState;
  using Blame = Loss::Blame;
  const int place = group.host_rank(member);
  switch (group.host().state(place)) {
    case RankState::kAbsent:
    case RankState::kAlive:
      if (succession.has_come(member)) return Loss{Cause::kRebuild, Blame::kInOrder};
      if (succession.has_closed(member)) {
        return Loss{Cause::kClosed, blame_of(group.host().ending(place))};
      }
      return std::nullopt;
    case RankState::kLeft:
      return Loss{Cause::kLeft, blame_of(group.host().ending(place))};
    case RankState::kSilent:
      return Loss{Cause::kSilent, Blame::kItself};
    case RankState::kCut:
      return Loss{Cause::kCut, Blame::kItself};
    case RankState::kDied:
      break;
  }
  const Blame said = blame_of(group.host().ending(place));
  return Loss{Cause::kDied, said == Blame::kInOrder ? Blame::kItself : said};
}

}  // namespace hocket::failure
