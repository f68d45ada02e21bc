#include "membership/failure/inquiry.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "membership/control/succession.h"
#include "membership/failure/loss.h"

namespace hocket::failure {

using control::Cause;
using control::Failure;

namespace {

// Returns the members of a circle of waits that includes this rank, as bits. 0: there is none. Only
// ranks of this host are considered. A rank that waits for any of several ranks shows itself as the
// awaited rank.
std::uint64_t circle_of(const control::GroupControl& group) {
  const control::HostControl& host = group.host();
  std::vector<int> places;
  int at = host.self();
  do {
    places.push_back(at);
    const int next = host.waits.awaited_by(at);
    if (next < 0 || next == at || std::cmp_greater(places.size(), host.places())) return 0;
    at = next;
  } while (at != host.self());
  std::uint64_t members = 0;
  for (int i = 0; i < std::min(group.size(), 64); ++i) {
    if (std::ranges::find(places, group.host_rank(i)) != places.end()) {
      members |= std::uint64_t{1} << i;
    }
  }
  return members;
}

// The time in which a lost rank's last messages may still arrive after the news of its loss.
constexpr auto kOvertaking = std::chrono::milliseconds(10);
// The same time for a rank that leaves or calls `rebuild`. It first makes sure that its messages
// are on their way.
constexpr auto kOvertakingInOrder = std::chrono::milliseconds(500);
// The same time for a rank that closes a communicator. It may be about to leave the job, which is
// the better explanation.
constexpr auto kToLeave = std::chrono::milliseconds(100);
// The same time for a rank that has finished the call. It has sent all its data, which a slow
// network may still be carrying; this is the longest gap between two pieces of the data. If the
// connection has broken, the rest comes soon or never.
constexpr auto kOnItsWay = std::chrono::seconds(3);
constexpr auto kOnABrokenWay = std::chrono::milliseconds(500);

// A member that is lost. A value.
struct Lost {
  int member = -1;
  Loss loss;
  std::int64_t at = 0;  // see Liveness::ended_at

  // Returns whether this member is to blame rather than `other`. Their rank numbers do not matter.
  // Among two sudden losses with equal blame, the earlier one is to blame: a rank that ends because
  // of another rank ends later.
  bool is_before(const Lost& other) const noexcept {
    if (loss.blame != other.loss.blame) return loss.blame < other.loss.blame;
    return loss.sudden() && at < other.at;
  }
};

}  // namespace

std::string describe(const MessageCall& call) {
  const engine::Envelope& e = call.envelope;
  const std::string_view verb = call.probes ? "probe" : call.sends ? "send" : "recv";
  const std::string what = call.probes ? std::string(verb)
                           : call.is_object
                               ? fmt::format("{}_object", verb)
                               : fmt::format("{} of {}[{}]", verb, name_of(e.dtype), e.count);
  return fmt::format("{} {} {} {}",
                     what,
                     call.sends ? "to" : "from",
                     e.peer == engine::kAnyPeer ? "any rank" : fmt::format("rank {}", e.peer),
                     e.tag == engine::kAnyTag
                         ? "any tag"
                         : fmt::format("tag {}", e.tag == engine::kStagedTag ? 0 : e.tag));
}

// Reports a loss only after a delay, which `doubt` tracks: the news of a loss may overtake messages
// that were sent before it. This can happen between hosts, and if the lost rank had finished the
// call.
Verdict Inquiry::look(const Awaited& awaited, Doubt& doubt) {
  Verdict found = find(awaited);
  const Failure* const failure = std::get_if<Failure>(&found);
  if (failure == nullptr || !is_loss(failure->cause)) return found;
  const bool has_closed = failure->cause == Cause::kClosed;
  const bool in_order =
      failure->cause == Cause::kLeft || failure->cause == Cause::kRebuild || has_closed;
  const int culprit = failure->culprit;
  const bool is_known = culprit >= 0 && culprit < group_.size();
  Duration patience = in_order ? kOvertakingInOrder : Duration(kOvertaking);
  std::uint64_t came = 0;
  if (has_finished(awaited, culprit) && !group_.failed()) {
    patience = failure->cause == Cause::kCut ? Duration(kOnABrokenWay) : kOnItsWay;
    came = messages_.owed(culprit).value_or(0);
  } else if (!group_.spans() || (is_known && group_.is_here(culprit))) {
    if (!has_closed) return found;
    patience = kToLeave;
  }
  const auto until = base::Deadline::in(patience);
  doubt.until = doubt.until && doubt.came == came ? std::min(*doubt.until, until) : until;
  doubt.came = came;
  if (doubt.until->has_passed()) return found;
  return {};
}

Verdict Inquiry::find(const Awaited& awaited) {
  // Receive messages that no call waits for yet, because their sender may be waiting for room.
  messages_.progress();
  if (group_.failed()) return group_.failure();
  group_.host().liveness.look_for_deaths();
  core_dumps_.look([&](int member) {
    return awaited.sequence != 0 ? !has_finished(awaited, member)
                                 : awaited.peer == engine::kAnyPeer || awaited.peer == member;
  });
  group_.ask();
  // Look for refusals and mismatches first. They explain more than the loss of a rank, which may be
  // their consequence.
  if (awaited.sequence != 0) {
    if (auto refusal = find_refusal(group_, awaited.sequence)) return std::move(*refusal);
    if (auto other = find_difference(group_, awaited.sequence)) return std::move(*other);
  }
  if (auto loss = find_loss(awaited)) return std::move(*loss);
  if (interrupted_()) return interruption();
  return {};
}

bool Inquiry::has_finished(const Awaited& awaited, int member) const {
  return awaited.sequence != 0 && member >= 0 && member < group_.size() &&
         group_.finished_sequence(member) >= awaited.sequence;
}

// Returns whether the end of a rank matters to this wait.
//
// - A collective needs each rank that had not finished it, or some of whose messages have not
//   arrived. The rank may have ended, or lost its connection, before these messages left.
// - A message needs its own peer.
// - A receive from any rank needs each rank that was lost suddenly or ended by an exception: the
//   program may count on a message from it. A rank that left in good order has sent all its
//   messages. Then the wait is in vain only if all other ranks have left.
bool Inquiry::is_needed(const Awaited& awaited, int member, bool sudden, int living_before) const {
  if (member == group_.rank()) return true;
  if (awaited.sequence != 0) {
    return !has_finished(awaited, member) || messages_.owed(member).has_value();
  }
  if (awaited.peer != engine::kAnyPeer) return awaited.peer == member;
  const int last = group_.size() - 1;
  const int last_other = group_.rank() == last ? last - 1 : last;
  return sudden || (living_before == 0 && member == last_other);
}

// Finds the lost rank to blame. It is one of the needed ranks, unless an earlier loss of another
// rank may have caused the departure of the needed one.
std::optional<Failure> Inquiry::find_new_loss(const Awaited& awaited) {
  const std::uint32_t losses = group_.host().liveness.losses();
  const control::Succession succession(group_);
  int living = 0;
  bool any_lost = false;
  std::optional<Lost> needed;
  std::optional<Lost> other;
  for (int i = 0; i < group_.size(); ++i) {
    if (i == group_.rank() && !succession.has_come(i)) continue;
    const auto loss = loss_of(group_, succession, i);
    if (!loss) {
      ++living;
      continue;
    }
    any_lost = true;
    const Lost lost{
        .member = i, .loss = *loss, .at = group_.host().liveness.ended_at(group_.host_rank(i))};
    if (is_needed(awaited, i, loss->sudden(), living)) {
      if (!needed || lost.is_before(*needed)) needed = lost;
    } else if (loss->blame == Loss::Blame::kItself && !has_finished(awaited, i)) {
      if (!other || lost.is_before(*other)) other = lost;
    }
  }
  // No member is lost, so the new losses are of ranks outside this group.
  if (!any_lost) losses_seen_ = losses;
  if (!needed) return std::nullopt;
  const bool has_gone = needed->loss.cause == Cause::kLeft || needed->loss.cause == Cause::kDied;
  const bool is_to_blame = needed->loss.blame == Loss::Blame::kItself || !has_gone || !other;
  const Lost& culprit = is_to_blame ? *needed : *other;
  return loss_in(awaited, culprit.loss.cause, culprit.member);
}

// Makes the failure for the loss of `member`, with the call that needed the member.
Failure Inquiry::loss_in(const Awaited& awaited, Cause cause, int member) const {
  Failure failure{
      .cause = cause, .reporter = group_.rank(), .culprit = member, .sequence = awaited.sequence};
  if (awaited.sequence == 0) {
    if (awaited.message != nullptr) failure.text = describe(*awaited.message);
  } else if (const auto own = group_.find(group_.rank(), awaited.sequence)) {
    failure.signature = own->signature;
  } else {
    failure.signature.kind = awaited.kind;
  }
  return failure;
}

// Finds a rank that has ended its task and will therefore not come to the awaited call. Such a rank
// has no pending calls, so it will not begin any call of the task.
std::optional<Failure> Inquiry::find_returned(const Awaited& awaited) const {
  if (!group_.host().tasks.is_in_task()) return std::nullopt;
  using control::Ending;
  const auto ending_of = [this](int member) {
    return group_.host().end_reasons.ending(group_.host_rank(member));
  };
  const bool from_any = awaited.sequence == 0 && awaited.peer == engine::kAnyPeer;
  int found = -1;
  for (int i = 0; i < group_.size(); ++i) {
    if (i == group_.rank()) continue;
    if (!group_.host().tasks.has_ended(group_.host_rank(i))) {
      if (from_any) return std::nullopt;
      continue;
    }
    const bool is_missing = awaited.sequence == 0 ? from_any || awaited.peer == i
                                                  : group_.last_sequence(i) < awaited.sequence;
    if (!is_missing) continue;
    const bool has_failed = ending_of(i) != Ending::kInOrder;
    if (found < 0 || (has_failed && ending_of(found) == Ending::kInOrder)) found = i;
  }
  if (found < 0) return std::nullopt;
  return loss_in(awaited, Cause::kReturned, found);
}

// Makes the failure for a passed deadline. If ranks wait for each other in a circle, `missing` has
// all of them, and this rank too.
Failure Inquiry::lateness(const Awaited& awaited, Duration allowed) const {
  Failure failure{.cause = Cause::kLate,
                  .reporter = group_.rank(),
                  .sequence = awaited.sequence,
                  .text = base::in_seconds(allowed)};
  if (awaited.sequence == 0) {
    failure.culprit = awaited.peer;
    const control::Succession succession(group_);
    for (int i = 0; i < std::min(group_.size(), 64); ++i) {
      const bool may_come = awaited.peer == engine::kAnyPeer
                                ? i != group_.rank() && !loss_of(group_, succession, i)
                                : i == awaited.peer;
      if (may_come) failure.missing |= std::uint64_t{1} << i;
    }
    const std::string other = under_another_tag(awaited, messages_);
    failure.text =
        fmt::format("{} did not finish within {}{}{}",
                    awaited.message != nullptr ? describe(*awaited.message) : "work on its GPU",
                    base::in_seconds(allowed),
                    other.empty() ? "" : ", while ",
                    other);
    if (const std::uint64_t members = circle_of(group_); members != 0) failure.missing = members;
    return failure;
  }
  if (const auto own = group_.find(group_.rank(), awaited.sequence)) {
    failure.signature = own->signature;
  }
  for (int i = 0; i < std::min(group_.size(), 64); ++i) {
    if (i != group_.rank() && group_.last_sequence(i) < awaited.sequence) {
      failure.missing |= std::uint64_t{1} << i;
      if (failure.culprit < 0) failure.culprit = i;
    }
  }
  if (const std::uint64_t members = circle_of(group_); members != 0) failure.missing = members;
  return failure;
}

Failure Inquiry::interruption() const {
  return {.cause = Cause::kInterrupted,
          .reporter = group_.rank(),
          .culprit = group_.rank(),
          .sequence = group_.last_sequence(group_.rank())};
}

std::string under_another_tag(const Awaited& awaited, engine::PointToPoint& messages) {
  const MessageCall* const message = awaited.message;
  if (message == nullptr || message->sends) return {};
  if (message->envelope.tag >= engine::kAnyTag) return {};
  const auto other = messages.waiting({.peer = awaited.peer, .tag = engine::kAnyTag});
  if (!other || other->tag == message->envelope.tag) return {};
  return fmt::format("a message with tag {} from rank {} waits", other->tag, other->peer);
}

}  // namespace hocket::failure
