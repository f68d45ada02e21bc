#include "monitoring/live/stragglers.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "foundation/os/process/process_exit.h"
#include "membership/control/succession.h"
#include "membership/failure/loss.h"

namespace hocket::live {
namespace {

using control::GroupControl;

// The call that a member is in; absent: in none.
std::optional<std::uint64_t> call_of(const GroupControl& group, int member) {
  const std::uint64_t last = group.last_sequence(member);
  if (last == 0 || group.finished_sequence(member) >= last) return std::nullopt;
  return last;
}

// The ranks that `member` needs for call `sequence`, in which it is, and that have not come. In a
// call with data from a root, other ranks wait for the root alone.
std::vector<int> missing(const GroupControl& group, int member, std::uint64_t sequence) {
  if (const auto record = group.find(member, sequence)) {
    const engine::Signature& called = record->signature;
    const int root = called.root;
    const bool from_root =
        engine::row_of(called.kind).flow == engine::Flow::kFromRoot && root != member;
    if (from_root && root >= 0 && root < group.size() && group.last_sequence(root) < sequence) {
      return {root};
    }
  }
  std::vector<int> members;
  for (int i = 0; i < group.size(); ++i) {
    if (i != member && group.last_sequence(i) < sequence) members.push_back(i);
  }
  return members;
}

// The ranks outside any call that are furthest behind.
std::vector<int> idle(const GroupControl& group, const std::vector<int>& members) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::vector<int> found;
  for (const int member : members) {
    if (call_of(group, member)) continue;
    const std::uint64_t finished = group.finished_sequence(member);
    if (finished < least) found.clear();
    least = std::min(least, finished);
    if (finished == least) found.push_back(member);
  }
  return found;
}

// The ranks that may still send a message which is received from any rank.
std::vector<int> living_others(GroupControl& group) {
  const control::Succession succession(group);
  std::vector<int> members;
  for (int i = 0; i < group.size(); ++i) {
    if (i != group.rank() && !failure::loss_of(group, succession, i)) members.push_back(i);
  }
  return members;
}

// All have come to the call: finds ranks that have not finished and stand still.
Stragglers look_inside(const GroupControl& group, std::uint64_t sequence) {
  Stragglers stragglers{.members = {}, .have_come = true, .sequence = sequence};
  for (int i = 0; i < group.size(); ++i) {
    if (i == group.rank() || group.finished_sequence(i) >= sequence) continue;
    if (stands_still(group.host(), group.host_rank(i))) stragglers.members.push_back(i);
  }
  return stragglers;
}

}  // namespace

bool stands_still(const control::HostControl& host, int place) {
  if (place == host.self() || !host.is_here(place)) return false;
  const int pid = host.pid(place);
  return pid != getpid() && os::is_halted(pid, host.start(place));
}

// Each turn goes to an earlier call, so the search ends.
Stragglers find_stragglers(GroupControl& group, const failure::Awaited& awaited) {
  if (awaited.sequence == 0) {
    Stragglers stragglers;
    if (awaited.peer == engine::kAnyPeer) {
      stragglers.members = living_others(group);
      stragglers.one_suffices = stragglers.members.size() > 1;
    } else if (awaited.peer >= 0) {
      stragglers.members = {awaited.peer};
    }
    return stragglers;
  }
  int member = group.rank();
  // A call that waits behind others has not been announced: then it is the one before them.
  std::uint64_t sequence = std::min(awaited.sequence, group.last_sequence(member));
  while (sequence != 0) {
    const std::vector<int> late = missing(group, member, sequence);
    if (late.empty()) return look_inside(group, sequence);
    if (auto members = idle(group, late); !members.empty()) {
      return {.members = std::move(members), .have_come = false, .sequence = sequence};
    }
    std::uint64_t earliest = sequence;
    for (const int each : late) {
      const auto its = call_of(group, each);
      if (!its || *its >= earliest) continue;
      earliest = *its;
      member = each;
    }
    // They have moved on since.
    if (earliest == sequence) break;
    sequence = earliest;
  }
  return {.members = {}, .have_come = true, .sequence = sequence};
}

}  // namespace hocket::live
