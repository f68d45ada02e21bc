#include "membership/control/rebuild_turns.h"

#include <algorithm>
#include <utility>

namespace hocket::control {

bool RebuildTurns::is_given_up(int member, const RebuildRefusal& refusal) const noexcept {
  return group_->last_sequence(member) > refusal.after;
}

void RebuildTurns::pass_over_what_was_given_up() {
  for (int member = 0; member < group_->size(); ++member) {
    const auto refusal = group_->rebuild_refusal(member);
    if (refusal && is_given_up(member, *refusal)) turn_ = std::max(turn_, refusal->count + 1);
  }
}

std::optional<RebuildTurns::News> RebuildTurns::news() {
  pass_over_what_was_given_up();
  for (int member = 0; member < group_->size(); ++member) {
    if (member == group_->rank()) continue;
    auto refusal = group_->rebuild_refusal(member);
    if (!refusal || refusal->count < turn_ || is_given_up(member, *refusal)) continue;
    ++turn_;
    return News{.member = member, .reason = std::move(refusal->reason)};
  }
  return std::nullopt;
}

void RebuildTurns::refuse(std::string_view reason) {
  pass_over_what_was_given_up();
  group_->refuse_rebuild(turn_++, reason);
}

}  // namespace hocket::control
