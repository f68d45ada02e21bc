#include "membership/rendezvous/store/lost_members.h"

#include <algorithm>

#include "foundation/os/process/process_facts.h"

namespace hocket::rendezvous {
namespace {

// The time for a launcher to report how its rank has ended. The launcher learns of it after the
// connection has closed.
constexpr std::chrono::milliseconds kWaitForReason{300};
constexpr std::chrono::milliseconds kPause{5};

}  // namespace

void LostMembers::add(const StoreMember& member) {
  if (member.size == 0) return;  // it is no rank of a job, so no rank waits for it
  Lost lost{.member = member, .process = {}, .until = base::Deadline::in(kWaitForReason)};
  if (member.pid != 0) lost.process.emplace(member.pid, member.start);
  lost_.push_back(std::move(lost));
}

void LostMembers::forget(int rank, int size) {
  std::erase_if(lost_, [&](const Lost& lost) {
    return lost.member.rank == rank && lost.member.size == size;
  });
}

std::vector<LostMembers::Loss> LostMembers::take() {
  std::vector<Loss> losses;
  std::erase_if(lost_, [&](const Lost& lost) {
    os::ProcessExit::Answer answer{.state = os::ProcessExit::State::kNotYet};
    if (lost.process) answer = lost.process->ask();
    const bool is_known = answer.state == os::ProcessExit::State::kKnown;
    if (!is_known && !lost.until.has_passed()) return false;
    losses.push_back({.rank = lost.member.rank,
                      .size = lost.member.size,
                      .how = is_known ? os::describe_end(answer.status)
                                      : "ended or lost its connection to the store"});
    return true;
  });
  return losses;
}

base::Deadline LostMembers::next() const {
  return lost_.empty() ? base::Deadline::never() : base::Deadline::in(kPause);
}

}  // namespace hocket::rendezvous
