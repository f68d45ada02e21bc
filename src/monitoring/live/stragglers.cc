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

// Returns the number of the call that a member is in; nothing if it is in no call.
std::optional<std::uint64_t> call_of(const GroupControl& group, int member) {
  const std::uint64_t last = group.last_sequence(member);
  if (last == 0 || group.finished_sequence(member) >= last) return std::nullopt;
  return last;
}

// Returns the ranks for which `member` waits in call `sequence`: the ranks that have not begun it.
// In a call with data from a root, ranks wait for the root alone.
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

// Returns the members that are in no call. If there are several, only those furthest behind.
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

// Returns the other living ranks, which can still send to a receive from any rank.
std::vector<int> living_others(GroupControl& group) {
  const control::Succession succession(group);
  std::vector<int> members;
  for (int i = 0; i < group.size(); ++i) {
    if (i != group.rank() && !failure::loss_of(group, succession, i)) members.push_back(i);
  }
  return members;
}

// For a call that all ranks have begun: finds the ranks that have not finished it and whose
// processes are stopped.
Stragglers look_inside(const GroupControl& group, std::uint64_t sequence) {
  Stragglers stragglers{.members = {}, .have_come = true, .sequence = sequence};
  for (int i = 0; i < group.size(); ++i) {
    if (i == group.rank() || group.finished_sequence(i) >= sequence) continue;
    if (stands_still(group.host().liveness, group.host_rank(i))) stragglers.members.push_back(i);
  }
  return stragglers;
}

}  // namespace

bool stands_still(const control::Liveness& liveness, int place) {
  if (place == liveness.self() || !liveness.is_here(place)) return false;
  const int pid = liveness.pid(place);
  return pid != getpid() && os::is_halted(pid, liveness.start(place));
}

// The search ends, because each round goes to an earlier call.
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
  // A call that is queued behind others is not announced yet. Then the search starts with the
  // newest announced call.
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
    // The late ranks have moved on meanwhile.
    if (earliest == sequence) break;
    sequence = earliest;
  }
  return {.members = {}, .have_come = true, .sequence = sequence};
}

}  // namespace hocket::live
