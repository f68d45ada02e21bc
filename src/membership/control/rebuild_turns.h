// Tracks refused calls of `rebuild` that a rank has yet to learn of.
//
// Calls of `rebuild` have no numbers: ranks come to them from different calls, and may repeat them
// after a deadline. So the refused calls are counted instead. Each rank counts those of its own
// calls that any rank has refused. It announces its own refusals with its count. So a refusal ends
// the call with the same count on each rank, however late the rank makes this call.
//
// If a rank makes another call after a refusal, it has given up that `rebuild`, and refusals of it
// no longer matter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "membership/control/group.h"

namespace hocket::control {

// The refused calls of one rank. A value. The group must outlive it.
class RebuildTurns {
 public:
  explicit RebuildTurns(GroupControl& group) noexcept : group_(&group) {}

  struct News {
    int member = -1;
    std::string reason;
  };
  // Returns another rank's refusal of the call that this rank is making. The call then counts as
  // refused. Absent: no rank has refused it.
  std::optional<News> news();
  // Announces that this rank refuses its own call.
  void refuse(std::string_view reason);
  // Returns the turn of this rank's current call: the number, from 1, that the call has if it is
  // refused.
  std::uint64_t turn() const noexcept { return turn_; }
  // Moves to a later turn in which other ranks have come, if the rank that refused the earlier
  // turns cannot be reached.
  void catch_up(std::uint64_t turn) noexcept { turn_ = turn; }

 private:
  void pass_over_what_was_given_up();
  bool is_given_up(int member, const RebuildRefusal& refusal) const noexcept;

  GroupControl* group_;
  std::uint64_t turn_ = 1;
};

}  // namespace hocket::control
