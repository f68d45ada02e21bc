// Which refused calls of `rebuild` a rank has yet to hear of.
//
// These calls have no numbers of their own: ranks come to them from different calls, and come again
// after a deadline. What is counted are the refused ones. Each rank counts those of its own calls
// that were refused, by whomever, and what it refuses itself is that one of its calls to all. So a
// refusal ends that one call of each rank, whenever they come to it.
//
// Who goes on by other calls after a refusal has given that rebuild up, and nobody is to hear of it
// any more.
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
  // The refusal by another of the call that this rank makes. It counts as refused then.
  std::optional<News> news();
  // Announces this rank's own call as refused.
  void refuse(std::string_view reason);
  // In which this rank comes: the number, from 1, that its next refused call will have.
  std::uint64_t turn() const noexcept { return turn_; }
  // Others have come in a later turn, and who refused cannot be heard any more.
  void catch_up(std::uint64_t turn) noexcept { turn_ = turn; }

 private:
  void pass_over_what_was_given_up();
  bool is_given_up(int member, const RebuildRefusal& refusal) const noexcept;

  GroupControl* group_;
  std::uint64_t turn_ = 1;
};

}  // namespace hocket::control
