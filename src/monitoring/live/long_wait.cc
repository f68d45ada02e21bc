#include "monitoring/live/long_wait.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "foundation/base/log.h"
#include "foundation/os/process/process_state.h"
#include "monitoring/live/position.h"

namespace hocket::live {
namespace {

using control::RankState;

constexpr int kSamples = 8;           // before the first warning
constexpr std::size_t kDetailed = 3;  // ranks that are described in detail

// Returns the state of the process of `member`. Empty if it is unknown, for example on another
// host.
std::string doing(const control::GroupControl& group, int member) {
  const control::HostControl& host = group.host();
  const int place = group.host_rank(member);
  const int pid = host.liveness.pid(place);
  if (!host.is_here(place) || pid == 0) return {};
  if (pid == getpid()) {  // ranks that are threads
    return os::describe(
        os::thread_state(pid, host.liveness.start(place), host.liveness.thread(place)), pid);
  }
  return os::describe(os::process_state(pid, host.liveness.start(place)), pid);
}

}  // namespace

LongWait::~LongWait() { hide(); }

void LongWait::look(const failure::Awaited& awaited, const engine::Signature& shown) noexcept {
  if (waits_.after == kForever) return;
  now_ = Clock::now();
  if (!begun_) {
    begun_ = still_since_ = now_;
    speaks_at_ = waits_.after;
    next_ = now_ + waits_.after / kSamples;
    return;
  }
  if (now_ < next_) return;
  next_ = now_ + std::max(waits_.after, Duration(now_ - *begun_)) / kSamples;
  try {
    sample(awaited, shown);
  } catch (const std::exception&) {  // out of memory: no warning
  }
}

void LongWait::sample(const failure::Awaited& awaited, const engine::Signature& shown) {
  control::GroupControl& group = waits_.group;
  control::HostControl& host = group.host();
  const Stragglers stragglers = find_stragglers(group, awaited);
  Seen now{.sequence = stragglers.sequence, .one_suffices = stragglers.one_suffices};
  if (stragglers.one_suffices) {
    for (const int member : stragglers.members) {
      now.last += group.last_sequence(member);
      now.finished += group.finished_sequence(member);
    }
  } else if (!stragglers.members.empty()) {
    const int member = stragglers.members.front();
    now = {.place = group.host_rank(member),
           .sequence = stragglers.sequence,
           .last = group.last_sequence(member),
           .finished = group.finished_sequence(member)};
  }
  const bool is_still = now == seen_;
  if (!is_still && (seen_.place >= 0 || seen_.one_suffices)) still_since_ = now_;
  seen_ = now;
  // A rank that waits for any of several ranks shows itself as awaited. So a chain of waits ends at
  // this rank, and this rank warns.
  host.waits.show_awaited(now.one_suffices ? host.self() : now.place);
  shows_ = true;
  // A look that warns does not ask for positions. An answer would wake the late process, whose
  // state the warning reports.
  const bool speaks = is_still && Duration(now_ - *begun_) >= speaks_at_;
  if (!speaks) ask_places(stragglers);
  if (!speaks) return;
  if (of_ == Of::kStream && stragglers.members.empty()) return;
  if (!may_speak(stragglers, now.place)) return;
  call_ = awaited.message != nullptr ? failure::describe(*awaited.message)
                                     : failure::describe(awaited.sequence, shown);
  base::log(base::LogLevel::kWarning, sentence(stragglers, awaited));
  while (speaks_at_ <= Duration(now_ - *begun_)) speaks_at_ *= 2;
}

// Asks the ranks that the warning would name for their positions. A later look finds the answers.
void LongWait::ask_places(const Stragglers& stragglers) noexcept {
  if (stragglers.have_come) return;
  control::GroupControl& group = waits_.group;
  for (std::size_t i = 0; i < std::min(stragglers.members.size(), kDetailed); ++i) {
    ask_position(group.host(), group.host_rank(stragglers.members[i]));
  }
}

// Returns whether this rank gives the warning. Follows the chain of waits from `place` to a rank
// that waits for no other rank. The rank before it in the chain warns.
bool LongWait::may_speak(const Stragglers& stragglers, int place) {
  control::HostControl& host = waits_.group.host();
  circle_ = 0;
  if (place < 0) return claim(host.self());
  if (!stragglers.have_come) {
    int least = host.self();
    int at = place;
    for (int steps = 1; steps <= host.places(); ++steps) {
      const int next = host.waits.awaited_by(at);
      if (next < 0 || stands_still(host.liveness, at)) break;
      if (next == at) {
        give_up_claim();
        return false;
      }
      least = std::min(least, at);
      if (next == host.self()) {
        circle_ = steps + 1;
        break;
      }
      at = next;
    }
    if (circle_ != 0) return least == host.self() && claim(place);
    if (at != place) return false;
    if (is_spoken_for_elsewhere(place)) return false;
  }
  return claim(place);
}

// For a late rank of another host, returns whether a rank elsewhere warns of it. A waiting rank of
// the late rank's host warns, because it knows more. If there is none, the lowest waiting rank
// warns.
bool LongWait::is_spoken_for_elsewhere(int place) const {
  const control::GroupControl& group = waits_.group;
  const control::HostControl& host = group.host();
  if (host.is_here(place)) return false;
  int lowest = -1;
  for (int i = 0; i < group.size(); ++i) {
    if (group.last_sequence(i) <= group.finished_sequence(i)) continue;
    const int its = group.host_rank(i);
    if (!host.is_here(its) && host.remote_hosts.host_of(its) == host.remote_hosts.host_of(place))
      return true;
    if (lowest < 0) lowest = its;
  }
  return lowest >= 0 && !host.is_here(lowest);
}

// Claims the warning about the rank at `place`. Returns false if a living rank has claimed it.
bool LongWait::claim(int place) noexcept {
  control::HostControl& host = waits_.group.host();
  if (claimed_ == place) return true;
  give_up_claim();
  int holder = host.waits.speaker_about(place);
  const bool is_idle = holder < 0 || host.liveness.state(holder) != RankState::kAlive ||
                       stands_still(host.liveness, holder);
  if (!is_idle || !host.waits.speak_about(place, holder)) return false;
  claimed_ = place;
  return true;
}

void LongWait::give_up_claim() noexcept {
  if (claimed_ >= 0) waits_.group.host().waits.speak_no_more_about(claimed_);
  claimed_ = -1;
}

void LongWait::hide() noexcept {
  if (shows_) waits_.group.host().waits.show_awaited(-1);
  shows_ = false;
  give_up_claim();
}

void LongWait::over(End how) noexcept {
  hide();
  if (call_.empty()) return;
  try {
    base::log(base::LogLevel::kWarning,
              fmt::format("{} on {} {} after {}",
                          call_,
                          waits_.communicator,
                          how == End::kWell ? "has gone on" : "has ended with an error",
                          base::in_seconds(Clock::now() - *begun_)));
  } catch (const std::exception&) {
  }
  call_.clear();
}

// --- Text of the warning ------------------------------------------------------------------------

std::string LongWait::of_member(const Stragglers& stragglers, int member) const {
  const control::GroupControl& group = waits_.group;
  const std::string state = doing(group, member);
  const int at = group.host_rank(member);
  const std::string name = failure::name_of(group.host(), member, at);
  if (stragglers.have_come) {
    return fmt::format("{}, which has come to #{}{}{}",
                       name,
                       stragglers.sequence,
                       state.empty() ? "" : " and is ",
                       state);
  }
  const std::string place = place_of(control::Onlooker(group.host().memory.whole()), at);
  return fmt::format("{}, last seen in {} at least {} ago{}{}{}{}",
                     name,
                     waits_.texts.last_call(member).call,
                     base::in_seconds(now_ - still_since_),
                     state.empty() ? "" : ", now ",
                     state,
                     place.empty() ? "" : ", at ",
                     place);
}

std::string LongWait::of_circle() const {
  const control::HostControl& host = waits_.group.host();
  std::vector<int> ranks{host.world_rank(host.self())};
  for (int at = seen_.place; at >= 0 && at != host.self() && ranks.size() < kDetailed * 4;
       at = host.waits.awaited_by(at)) {
    ranks.push_back(host.world_rank(at));
  }
  return fmt::format("; ranks {} of the job wait for each other, in a circle",
                     fmt::join(ranks, ", "));
}

std::string LongWait::sentence(const Stragglers& stragglers,
                               const failure::Awaited& awaited) const {
  const control::GroupControl& group = waits_.group;
  std::string text = fmt::format("rank {} has waited {} in {} on {}",
                                 group.rank(),
                                 base::in_seconds(now_ - *begun_),
                                 call_,
                                 waits_.communicator);
  const std::vector<int>& members = stragglers.members;
  const std::size_t detailed = std::min(members.size(), kDetailed);
  const std::string next = stragglers.one_suffices ? "; or for " : "; for ";
  for (std::size_t i = 0; i < detailed; ++i) {
    text += (i == 0 ? " for " : next) + of_member(stragglers, members[i]);
  }
  if (members.size() > detailed) {
    text += fmt::format(
        "; {} for {} more", stragglers.one_suffices ? "or" : "and", members.size() - detailed);
  }
  if (circle_ != 0) text += of_circle();
  if (const std::string other = waits_.beside(awaited); !other.empty()) text += "; " + other;
  if (!members.empty()) return text;
  if (awaited.sequence == 0) return text;  // a message that no living rank can send
  text += fmt::format("; all ranks have come to #{}", stragglers.sequence);
  std::size_t told = 0;
  for (int i = 0; i < group.size() && told < kDetailed; ++i) {
    if (i == group.rank() || group.finished_sequence(i) >= stragglers.sequence) continue;
    const std::string state = doing(group, i);
    if (state.empty()) continue;
    text += fmt::format("{}rank {} is {}", told++ == 0 ? ", and " : "; ", i, state);
  }
  return text;
}

}  // namespace hocket::live
