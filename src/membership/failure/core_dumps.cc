#include "membership/failure/core_dumps.h"

namespace hocket::failure {

namespace {

constexpr int kAtOnce = 4;  // members that one look checks; other ranks check others

}  // namespace

void CoreDumps::look(const std::function<bool(int member)>& needed) {
  if (!when_.has_passed()) return;
  when_ = next();
  int looked = 0;
  for (int i = 0; i < group_.size() && looked < kAtOnce; ++i) {
    const int member = next_ % group_.size();
    next_ = member + 1;
    if (member == group_.rank() || !group_.is_here(member) || !needed(member)) continue;
    group_.host().liveness.look_for_core_dump(group_.host_rank(member));
    ++looked;
  }
}

}  // namespace hocket::failure
