// Tells why a rank takes part no longer.
#pragma once

#include <cstdint>
#include <optional>

#include "membership/control/cause.h"
#include "membership/control/succession.h"

namespace hocket::failure {

// How a rank was lost, and how much it is to blame. A value.
struct Loss {
  // Kinds of losses, most to blame first: the rank failed by itself, it ended after the loss of
  // another rank, or it left in good order.
  enum class Blame : std::uint8_t { kItself, kAfterALoss, kInOrder };
  control::Cause cause;
  Blame blame;

  // Returns whether work that the rank had begun may be unfinished.
  bool sudden() const noexcept { return blame != Blame::kInOrder; }
};

inline Loss::Blame blame_of(control::Ending ending) noexcept {
  if (ending == control::Ending::kInOrder) return Loss::Blame::kInOrder;
  return ending == control::Ending::kAfterALoss ? Loss::Blame::kAfterALoss : Loss::Blame::kItself;
}

// Returns how `member` was lost. Absent: it is not lost.
inline std::optional<Loss> loss_of(const control::GroupControl& group,
                                   const control::Succession& succession,
                                   int member) noexcept {
  using control::Cause;
  using control::RankState;
  using Blame = Loss::Blame;
  const int place = group.host_rank(member);
  switch (group.host().liveness.state(place)) {
    case RankState::kAbsent:
    case RankState::kAlive:
      if (succession.has_come(member)) return Loss{Cause::kRebuild, Blame::kInOrder};
      if (succession.has_closed(member)) {
        return Loss{Cause::kClosed, blame_of(group.host().end_reasons.ending(place))};
      }
      return std::nullopt;
    case RankState::kLeft:
      return Loss{Cause::kLeft, blame_of(group.host().end_reasons.ending(place))};
    case RankState::kSilent:
      return Loss{Cause::kSilent, Blame::kItself};
    case RankState::kCut:
      return Loss{Cause::kCut, Blame::kItself};
    case RankState::kDied:
      break;
  }
  const Blame said = blame_of(group.host().end_reasons.ending(place));
  return Loss{Cause::kDied, said == Blame::kInOrder ? Blame::kItself : said};
}

}  // namespace hocket::failure
