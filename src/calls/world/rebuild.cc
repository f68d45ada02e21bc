// Rebuilds a communicator after its end, for the ranks that go on. membership/control/succession.h
// describes how they agree.
// This file has one rank's part. It announces that it has come, waits for the other ranks, and
// allocates the new group's memory if it is the first rank.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "calls/call/operation.h"
#include "calls/call/waiter.h"
#include "calls/device/calls.h"
#include "calls/world/communicator_impl.h"
#include "calls/world/world.h"
#include "foundation/base/poll.h"
#include "membership/control/succession.h"
#include "membership/failure/core_dumps.h"
#include "membership/failure/texts.h"

namespace hocket::world {

using base::Deadline;
using control::Members;
using control::Succession;

namespace {

// Time limit for the first rank to allocate. Then other ranks allocate, too, because the first rank
// may be stopped.
constexpr std::chrono::milliseconds kForTheFirst{10};
// Time for hosts to agree, once they no longer wait for missing ranks.
constexpr std::chrono::seconds kForAgreement{5};
// Time limit for a refusal to arrive from the refusing rank's host, when other ranks are known to
// have heard it.
constexpr std::chrono::seconds kForReasons{1};
constexpr std::size_t kNamed = 8;  // ranks in a message

call::Membership heirs(const call::Membership& old, const Members& members, int rank) {
  const auto base = old.name.substr(0, old.epoch == 0 ? old.name.size() : old.name.rfind('~'));
  call::Membership made{.name = fmt::format("{}~{}", base, old.epoch + 1), .epoch = old.epoch + 1};
  for (int i = 0; i < old.size(); ++i) {
    const auto m = static_cast<std::size_t>(i);
    if (!members[m]) continue;
    if (i == rank) made.rank = made.size();
    made.world_ranks.push_back(old.world_ranks[m]);
    made.hosts.push_back(old.hosts[m]);
    made.host_ranks.push_back(old.host_ranks[m]);
  }
  made.has_lost_ranks = old.has_lost_ranks || made.size() < old.size();
  return made;
}

// One rank's call of `rebuild`. A value for the length of the call.
class Rebuild {
 public:
  Rebuild(CommunicatorImpl& old, control::RebuildTurns& turns, const RebuildOptions& options)
      : old_(old),
        turns_(turns),
        options_(options),
        words_(old.group()),
        allowed_(options.deadline.value_or(old.deadline())),
        deadline_(Deadline::in(allowed_)),
        core_dumps_(old.group()) {}

  // Waits for the new group; returns the offset of its block.
  std::uint64_t wait();
  // The new group's members.
  Members members(std::uint64_t block) const;
  [[noreturn]] void raise_counted_out(const Members& members) const;

 private:
  bool in_reach() const;
  void hear();
  void look();
  void try_to_appoint();
  std::optional<Members> choice();
  bool is_first(const Members& members) const;
  void appoint(const Members& members);
  [[noreturn]] void raise_missing() const;
  [[noreturn]] void raise_minority() const;
  Status status(ErrorCode code, std::string message) const;

  CommunicatorImpl& old_;
  control::RebuildTurns& turns_;
  const RebuildOptions& options_;
  Succession words_;
  const Duration allowed_;
  Deadline deadline_;
  failure::CoreDumps core_dumps_;
  bool extended_ = false;
  std::optional<Deadline> behind_until_;  // when to assume a refusal that this host has not heard
  std::optional<Deadline> mine_at_;       // time at which any member may allocate
};

std::uint64_t Rebuild::wait() {
  hear();
  words_.come(
      old_.rank(), options_.allow_minority ? control::kAlone : control::kCame, turns_.turn());
  call::Waiter waiter(old_.world()->host());
  std::uint64_t block = 0;
  bool is_first = true;
  const auto is_over = [&](bool looks) {
    waiter.wake_by(std::min(deadline_, failure::CoreDumps::next()));
    hear();
    block = words_.successor();
    if (block == 0 && (looks || std::exchange(is_first, false))) {
      look();
      try_to_appoint();
    }
    return block != 0;
  };
  base::wait_until(is_over, waiter);
  return block;
}

// Throws if another rank has refused this call.
void Rebuild::hear() {
  auto refused = turns_.news();
  if (!refused) {
    const std::uint64_t latest = words_.latest_turn();
    if (latest <= turns_.turn()) return;
    if (!behind_until_) behind_until_ = Deadline::in(kForReasons);
    if (!behind_until_->has_passed()) return;
    turns_.catch_up(latest);
    refused = {.member = -1, .reason = "it has ended since"};
  }
  const bool is_known = refused->member >= 0;
  Status what = status(ErrorCode::kInvalidArgument,
                       fmt::format("{} refused rebuild() of {}: {}; call it again on all ranks",
                                   is_known ? fmt::format("rank {}", refused->member) : "a rank",
                                   old_.membership().name,
                                   refused->reason));
  what.peer = refused->member;
  throw InvalidArgument(std::move(what));
}

// Throws if the wait cannot succeed any more.
void Rebuild::look() {
  control::HostControl& host = old_.world()->host();
  host.liveness.look_for_deaths();
  core_dumps_.look([this](int member) { return !words_.has_come(member); });
  if (old_.world()->interrupted()) {
    throw Aborted(status(
        ErrorCode::kAborted,
        fmt::format("rebuild() of {} was interrupted while it waited", old_.membership().name)));
  }
  if (old_.closing.is_called_out()) {
    throw Aborted(status(ErrorCode::kAborted,
                         fmt::format("rebuild() of {} was given up: another thread closes it",
                                     old_.membership().name)));
  }
  if (words_.successor() != 0) return;
  if (old_.group().spans()) {
    if (const auto decided = words_.decided();
        decided && !(*decided)[static_cast<std::size_t>(old_.rank())]) {
      raise_counted_out(*decided);
    }
    if (!words_.is_decided() && words_.is_ready() && !in_reach()) raise_minority();
  }
  if (!deadline_.has_passed()) return;
  // If no rank is missing, only the agreement remains, which takes a short time.
  const bool ready = words_.is_ready();
  if (extended_ || (!ready && !options_.exclude_missing)) raise_missing();
  extended_ = true;
  deadline_ = Deadline::in(kForAgreement);
  if (!ready) words_.come(old_.rank(), control::kImpatient, turns_.turn());
}

// Returns whether the ranks that have come may decide for all.
bool Rebuild::in_reach() const {
  const auto& hosts = old_.membership().hosts;
  const std::vector<int> there = words_.hosts_there(hosts);
  return words_.may_go_alone() || words_.outweighs(hosts, {there.begin(), there.end()});
}

// Returns the ranks that go on, if they are known. Within a host these are the ranks that have
// come, once no further rank is awaited. Between hosts, the hosts agree on them.
std::optional<Members> Rebuild::choice() {
  if (old_.group().spans()) return words_.decided();
  if (!words_.is_ready()) return std::nullopt;
  return words_.there();
}

bool Rebuild::is_first(const Members& members) const {
  for (int i = 0; i < words_.size(); ++i) {
    if (members[static_cast<std::size_t>(i)] && old_.group().is_here(i) && !words_.is_lost(i)) {
      return i == old_.rank();
    }
  }
  return false;
}

void Rebuild::try_to_appoint() {
  if (words_.successor() != 0) return;
  const auto members = choice();
  if (!members || !(*members)[static_cast<std::size_t>(old_.rank())]) return;
  if (!mine_at_) mine_at_ = Deadline::in(kForTheFirst);
  if (is_first(*members) || mine_at_->has_passed()) appoint(*members);
}

void Rebuild::appoint(const Members& members) {
  WorldImpl& world = *old_.world();
  control::HostControl& host = world.host();
  const call::Membership made = heirs(old_.membership(), members, old_.rank());
  std::vector<int> holders;
  std::copy_if(
      made.host_ranks.begin(), made.host_ranks.end(), std::back_inserter(holders), [&](int place) {
        return host.is_here(place);
      });
  const GroupShape shape{.size = made.size(), .local = static_cast<int>(holders.size())};
  if (shape.spans()) holders.push_back(control::HostMemory::kNetwork);
  const std::uint64_t block = host.memory.allocate(group_bytes(world.engines(), shape), holders);
  format_group(host.memory.at(block), made.host_ranks, shape.local);
  if (words_.appoint(block)) return;
  for (const int holder : holders) host.memory.release(block, holder);
}

Members Rebuild::members(std::uint64_t block) const {
  control::HostControl& host = old_.world()->host();
  const Succession made(host, host.memory.at(block, control::GroupControl::bytes(1)), nullptr);
  host.memory.at(block, control::GroupControl::bytes(made.size()));
  std::set<int> places;
  for (int i = 0; i < made.size(); ++i) places.insert(made.place(i));
  Members members(static_cast<std::size_t>(words_.size()));
  for (int i = 0; i < words_.size(); ++i) {
    members[static_cast<std::size_t>(i)] = places.contains(old_.group().host_rank(i));
  }
  return members;
}

// --- Errors -------------------------------------------------------------------------------------

Status Rebuild::status(ErrorCode code, std::string message) const {
  return {.code = code,
          .message = std::move(message),
          .communicator = old_.membership().name,
          .operation = "rebuild",
          .rank = old_.rank()};
}

std::string name_some(std::span<const int> ranks) {
  const auto shown = ranks.first(std::min(ranks.size(), kNamed));
  std::string text =
      fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(shown, ", "));
  if (shown.size() < ranks.size()) text += fmt::format(" and {} others", ranks.size() - kNamed);
  return text;
}

void Rebuild::raise_counted_out(const Members& members) const {
  std::vector<int> in;
  std::vector<int> cut;  // ranks of other hosts that this host cannot reach
  for (int i = 0; i < words_.size(); ++i) {
    if (!members[static_cast<std::size_t>(i)]) continue;
    in.push_back(i);
    if (words_.is_lost(i) && !words_.has_ended(i)) cut.push_back(i);
  }
  const std::string why =
      cut.empty() ? std::string("came too late")
                  : "is left out, as the connections of its host to " + name_some(cut) + " broke";
  throw RendezvousError(status(
      ErrorCode::kRendezvous,
      fmt::format("rank {} {}: {} rebuilt {} without it, and there is no way back in; end this "
                  "process, and start it again as a part of a new job",
                  old_.rank(),
                  why,
                  name_some(in),
                  old_.membership().name)));
}

void Rebuild::raise_minority() const {
  std::vector<int> here;
  std::vector<int> silent;
  for (int i = 0; i < words_.size(); ++i) {
    if (words_.is_there(i)) here.push_back(i);
    if (!words_.is_there(i) && !words_.has_ended(i)) silent.push_back(i);
  }
  throw RendezvousError(status(
      ErrorCode::kRendezvous,
      fmt::format("{} cannot rebuild {}: {} cannot be reached, and may have gone on without this "
                  "side, which is not the greater part; end this side, or rebuild with "
                  "allow_minority where both may go on",
                  name_some(here),
                  old_.membership().name,
                  name_some(silent))));
}

void Rebuild::raise_missing() const {
  std::vector<int> missing;
  std::vector<RankCall> calls;
  std::vector<std::string> seen;
  const std::vector<RankCall> last = old_.failures.last_calls();
  for (int i = 0; i < words_.size(); ++i) {
    if (words_.is_there(i) || words_.is_out_of_reach(i)) continue;
    missing.push_back(i);
    calls.push_back(last[static_cast<std::size_t>(i)]);
    if (seen.size() == kNamed) continue;
    seen.push_back(fmt::format("{} has not called it, last seen in {}",
                               failure::name_of(old_.world()->host(), i, old_.group().host_rank(i)),
                               calls.back().call));
  }
  Status what = status(
      ErrorCode::kDeadlineExceeded,
      fmt::format(
          "rebuild() of {} did not finish within {}: {}",
          old_.membership().name,
          base::in_seconds(allowed_),
          missing.empty()
              ? std::string("all had come, but the hosts did not agree in time; call it again")
              : fmt::format("{}; give it more time, or go on without (exclude_missing)",
                            fmt::join(seen, "; "))));
  if (!missing.empty()) what.peer = missing.front();
  throw DeadlineExceeded(std::move(what), std::move(missing), std::move(calls));
}

}  // namespace

std::shared_ptr<CommunicatorImpl> CommunicatorImpl::rebuild(const RebuildOptions& options) {
  const call::CallGuard guard(*this);
  if (!is_open() || forks().forked() || world_->has_left()) raise_unusable();
  failures.set_seen();  // the program abandons its pending calls
  if (rebuilt_) {
    throw InvalidArgument(
        fmt::format("communicator {} has been rebuilt already; use what rebuild() returned",
                    membership().name));
  }
  // Calls on a GPU have returned, so the program relies on their results. So they may end before
  // this rank announces that it has come.
  if (devices_ && !group().failed()) devices_->session.finish();
  closing.drop_calls(control::Cause::kRebuild);
  Rebuild rebuild(*this, *rebuild_turns_, options);
  const std::uint64_t block = rebuild.wait();
  const Members members = rebuild.members(block);
  // Work on GPUs learns of the rebuild here, and so do ranks that were counted out while they
  // waited in a call.
  group().fail(failures.own(control::Cause::kRebuild));
  if (!members[static_cast<std::size_t>(rank())]) rebuild.raise_counted_out(members);
  call::Membership made = heirs(membership(), members, rank());
  if (made.spans()) {
    Succession words(world_->host(), world_->host().memory.at(block), nullptr);
    words.enlist(made.id());
  }
  auto impl = make(world_, std::move(made), block);
  impl->set_deadline(deadline());
  impl->set_audited(is_audited());
  rebuilt_ = true;
  return impl;
}

void CommunicatorImpl::refuse_rebuild(const std::string& reason) {
  const call::CallGuard guard(*this);
  if (!is_open() || forks().forked()) raise_unusable();
  if (!rebuilt_) rebuild_turns_->refuse(reason);
  throw InvalidArgument(
      Status{.code = ErrorCode::kInvalidArgument,
             .message = fmt::format("rebuild() of {}: {}", membership().name, reason),
             .communicator = membership().name,
             .operation = "rebuild",
             .rank = rank()});
}

}  // namespace hocket::world
