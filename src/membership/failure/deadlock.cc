#include "membership/failure/deadlock.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/kinds.h"
#include "foundation/base/hash.h"
#include "membership/control/succession.h"
#include "membership/failure/loss.h"
#include "membership/failure/texts.h"

namespace hocket::failure {
namespace {

using control::BlockingCall;
using control::GroupControl;

// Finds the members of a group that are blocked in calls, and that only wait for each other.
class Standstill {
 public:
  explicit Standstill(GroupControl& group);

  bool contains(int member) const { return is_stuck_[index(member)]; }
  std::vector<int> members() const;
  // Returns a hash of the stuck members and of the numbers of their calls. Never 0.
  std::uint64_t hash() const noexcept;

 private:
  static std::size_t index(int member) { return static_cast<std::size_t>(member); }
  bool can_go_on(int member) const;
  bool waits_for_stuck(int member, std::int32_t peer) const;
  bool needs(int member, std::uint64_t sequence, int other) const;

  GroupControl& group_;
  std::vector<std::optional<GroupControl::ShownCall>> calls_;
  std::vector<bool> is_stuck_;
  std::vector<bool> has_left_;  // it left in good order, so it sends no more
};

// Starts with all blocked members. Then it removes members that can go on, until no such member
// remains.
Standstill::Standstill(GroupControl& group) : group_(group) {
  const control::Succession succession(group);
  for (int i = 0; i < group.size(); ++i) {
    calls_.push_back(group.is_here(i) ? group.blocking(i) : std::nullopt);
    is_stuck_.push_back(calls_.back().has_value());
    const auto loss = i == group.rank() ? std::nullopt : loss_of(group, succession, i);
    has_left_.push_back(loss && !loss->sudden());
  }
  for (bool changed = true; std::exchange(changed, false);) {
    for (int i = 0; i < group.size(); ++i) {
      if (!is_stuck_[index(i)] || !can_go_on(i)) continue;
      is_stuck_[index(i)] = false;
      changed = true;
    }
  }
}

bool Standstill::can_go_on(int member) const {
  const BlockingCall& call = calls_[index(member)]->call;
  if (call.sequence == 0) {
    const std::size_t count = std::min<std::size_t>(call.peer_count, BlockingCall::kPeers);
    return std::none_of(call.peers.begin(),
                        call.peers.begin() + static_cast<std::ptrdiff_t>(count),
                        [&](std::int32_t peer) { return waits_for_stuck(member, peer); });
  }
  bool are_all_away = group_.size() > 1;
  for (int i = 0; i < group_.size(); ++i) {
    if (i == member) continue;
    if (is_stuck_[index(i)] && needs(member, call.sequence, i)) return false;
    are_all_away &=
        !has_left_[index(i)] && is_stuck_[index(i)] && group_.last_sequence(i) < call.sequence;
  }
  // A root may need no other rank's data, but it waits until the others have taken its own data. It
  // waits in vain if all others are stuck before this call. A rank that has left is no part of a
  // deadlock, because its loss ends the call.
  return !are_all_away;
}

bool Standstill::waits_for_stuck(int member, std::int32_t peer) const {
  if (peer != engine::kAnyPeer) {
    return peer >= 0 && peer < group_.size() && is_stuck_[index(peer)];
  }
  bool any = false;
  for (int i = 0; i < group_.size(); ++i) {
    if (i == member || has_left_[index(i)]) continue;
    if (!is_stuck_[index(i)]) return false;
    any = true;
  }
  return any;
}

// Returns whether `member` cannot finish its collective before `other` has come to it. False if
// this is not certain.
bool Standstill::needs(int member, std::uint64_t sequence, int other) const {
  if (group_.last_sequence(other) >= sequence) return false;
  const auto record = group_.find(member, sequence);
  if (!record) return false;
  const engine::Signature& called = record->signature;
  if (called.digest == engine::kMeetsAll) return true;
  const engine::KindRow& row = engine::row_of(called.kind);
  // A call that makes a group or memory exchanges data among all ranks in each of its parts. A
  // reduction that is composed of other calls may not.
  if (row.done == engine::Done::kByCalls) return !row.operates;
  const bool has_parts = row.regular != called.kind;  // a part may be empty; no rank waits for it
  if (row.done != engine::Done::kByEngines || has_parts) return false;
  if (called.count == 0 && called.kind != engine::Kind::kBarrier) return false;
  switch (row.flow) {
    case engine::Flow::kAmongAll:
      return row.prefix == engine::Prefix::kNone || other < member;
    case engine::Flow::kToRoot:
      return member == called.root;
    case engine::Flow::kFromRoot:
      return other == called.root;
    case engine::Flow::kBetweenTwo:
      break;
  }
  return false;
}

std::vector<int> Standstill::members() const {
  std::vector<int> members;
  for (int i = 0; i < group_.size(); ++i) {
    if (is_stuck_[index(i)]) members.push_back(i);
  }
  return members;
}

std::uint64_t Standstill::hash() const noexcept {
  std::uint64_t hash = base::kHashSeed;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (is_stuck_[i]) hash = base::mix(base::mix(hash, i), calls_[i]->number);
  }
  return hash | 1;
}

// Returns a text such as "rank 0 in recv of float32[3] from rank 1 tag 0, rank 1 in barrier #2".
std::string calls_of(const GroupControl& group, const std::vector<int>& members) {
  constexpr std::size_t kMost = 3;  // calls that are described; the text only counts the others
  std::vector<std::string> told;
  for (std::size_t i = 0; i < std::min(kMost, members.size()); ++i) {
    const auto shown = group.blocking(members[i]);
    std::string what = group.shown_wait(members[i]);
    if (shown && shown->call.sequence != 0) {
      const auto record = group.find(members[i], shown->call.sequence);
      if (record) what = describe(record->sequence, record->signature);
    }
    told.push_back(fmt::format("rank {} in {}", members[i], what.empty() ? "a call" : what));
  }
  if (members.size() > kMost) told.push_back(fmt::format("{} more", members.size() - kMost));
  return fmt::format("{}", fmt::join(told, ", "));
}

}  // namespace

bool DeadlockSearch::is_due() noexcept {
  if (next_.is_never()) next_ = base::Deadline::in(after_);
  return next_.has_passed();
}

void DeadlockSearch::hide() noexcept {
  if (moves_) group_.hide_blocking();
  moves_.reset();
}

void DeadlockSearch::show_other_tag(const Awaited& awaited) {
  const std::string other = under_another_tag(awaited, messages_);
  if (other.empty()) return;
  group_.show_wait(fmt::format("{} ({})", describe(*awaited.message), other));
}

std::optional<control::Failure> DeadlockSearch::look(std::span<const Awaited> awaited) {
  next_ = base::Deadline::in(pause_);
  pause_ = std::min<Duration>(kLongestPause, pause_ * 2);
  const auto moves = messages_.moves_at_rest();
  if (!moves) {
    hide();
    return std::nullopt;
  }
  if (moves != moves_) {
    BlockingCall call{.sequence = awaited.front().sequence};
    for (const Awaited& one : awaited.first(std::min(awaited.size(), BlockingCall::kPeers))) {
      if (one.sequence == 0) call.peers[call.peer_count++] = one.peer;
    }
    group_.show_blocking(call);
    moves_ = moves;
    pause_ = kPause;
    next_ = base::Deadline::in(pause_);
    return std::nullopt;  // something has moved: the calls step before the next look
  }
  const Standstill standstill(group_);
  if (!standstill.contains(group_.rank())) return std::nullopt;
  const std::vector<int> members = standstill.members();
  const std::uint64_t hash = standstill.hash();
  if (group_.vote_of(group_.rank()) != hash) {
    if (messages_.progress() || messages_.moves_at_rest() != moves_) return std::nullopt;
    show_other_tag(awaited.front());
    group_.vote(hash);
    for (const int member : members) {
      if (member != group_.rank()) group_.ring(member);
    }
    pause_ = kPause;
    next_ = base::Deadline::in(pause_);
  }
  const bool is_proven = std::all_of(
      members.begin(), members.end(), [&](int member) { return group_.vote_of(member) == hash; });
  if (!is_proven) return std::nullopt;
  control::Failure failure{.cause = control::Cause::kDeadlock,
                           .reporter = group_.rank(),
                           .culprit = members.front(),
                           .sequence = awaited.front().sequence,
                           .text = calls_of(group_, members)};
  for (const int member : members) {
    if (member < 64) failure.missing |= std::uint64_t{1} << member;
  }
  if (const auto own = group_.find(group_.rank(), failure.sequence)) {
    failure.signature = own->signature;
  }
  return failure;
}

}  // namespace hocket::failure
