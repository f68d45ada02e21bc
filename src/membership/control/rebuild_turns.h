// Tracks refused calls of `rebuild` that a rank has yet to hear of.
//
// Calls of `rebuild` have no numbers: ranks come to them from different calls, and again after a
// deadline. So refused calls are counted. Each rank counts its own calls that were refused, by any
// rank, and announces its own refusals with that count. So a refusal ends the call with that count
// on each rank, whenever the rank comes to it.
//
// A rank that makes other calls after a refusal has given that rebuild up, and refusals of it no
// longer matter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "membership/control/group.h"

namespace hocket::control {

// A value, one rank's; its group must outlive it.
class RebuildTurns {
 public:
  explicit RebuildTurns(GroupControl& group) noexcept : group_(&group) {}

  struct News {
    int member = -1;
    std::string reason;
  };
  // Returns another rank's refusal of the call that this rank makes, which then counts as refused.
  std::optional<News> news();
  // Announces this rank's own call as refused.
  void refuse(std::string_view reason);
  // The turn in which this rank comes: the number, from 1, that its next refused call will have.
  std::uint64_t turn() const noexcept { return turn_; }
  // Moves to a later turn, in which others have come, if the refusing rank is out of reach.
  void catch_up(std::uint64_t turn) noexcept { turn_ = turn; }

 private:
  void pass_over_what_was_given_up();
  bool is_given_up(int member, const RebuildRefusal& refusal) const noexcept;

  GroupControl* group_;
  std::uint64_t turn_ = 1;
};

}  // namespace hocket::control
