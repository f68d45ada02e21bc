#include "membership/control/agreement.h"

#include <algorithm>
#include <utility>

namespace hocket::control {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRepeat{40};
// The pause of a proposer whose ballot was refused because of a higher one. Hosts with higher
// numbers pause longer, so that one host begins before the others.
constexpr milliseconds kYield{15};
constexpr int kHostBits = 16;
constexpr std::uint64_t kHostMask = (1 << kHostBits) - 1;

std::uint64_t ballot_after(std::uint64_t highest, int host) {
  return ((highest >> kHostBits) + 1) << kHostBits | static_cast<std::uint64_t>(host);
}

Agreement::Clock::duration yield_of(int host) { return kYield * (1 + host % 16); }

// Returns the members that this host cannot hear. Members that have ended are left out: other
// messages tell the proposer of their end.
Members unheard(const Succession& words) {
  Members members(static_cast<std::size_t>(words.size()));
  for (int i = 0; i < words.size(); ++i) {
    members[static_cast<std::size_t>(i)] = words.is_lost(i) && !words.has_ended(i);
  }
  return members;
}

int members_of(int host, const Members& members, std::span<const int> hosts) {
  int count = 0;
  for (std::size_t i = 0; i < members.size(); ++i) count += members[i] && hosts[i] == host ? 1 : 0;
  return count;
}

// Returns whether `lost`, the members that some host cannot hear, contains one of `members` on
// `host`.
bool misses(const Members& lost, const Members& members, std::span<const int> hosts, int host) {
  for (std::size_t i = 0; i < members.size() && i < lost.size(); ++i) {
    if (members[i] && lost[i] && hosts[i] == host) return true;
  }
  return false;
}

// Finds the heaviest set of hosts that all hear each other: the set with the most members. A value.
class Hearing {
 public:
  // `weights[i]` is the number of members on host i.
  explicit Hearing(std::vector<int> weights)
      : weights_(std::move(weights)),
        deaf_(weights_.size(), std::vector<bool>(weights_.size(), false)) {}

  // Notes that hosts `a` and `b` do not hear each other.
  void part(std::size_t a, std::size_t b) {
    deaf_[a][b] = true;
    deaf_[b][a] = true;
  }
  // Returns the hosts of the heaviest set, in ascending order. Among equally heavy sets it is the
  // one whose hosts come first. Few pairs of hosts do not hear each other, so the first set that is
  // tried is nearly always the heaviest. Otherwise the search ends after kMostSteps at the latest,
  // with the best set so far.
  std::vector<std::size_t> heaviest() {
    best_weight_ = 0;
    best_.clear();
    taken_.clear();
    steps_ = kMostSteps;
    int all = 0;
    for (const int weight : weights_) all += weight;
    extend(0, 0, all);
    return best_;
  }
  static constexpr int kMostSteps = 100'000;

 private:
  // Tries all sets that extend `taken_` by hosts from `next` on. `weight` is the weight of
  // `taken_`, and `left` that of the hosts from `next` on.
  void extend(std::size_t next, int weight, int left) {
    if (weight > best_weight_) {
      best_weight_ = weight;
      best_ = taken_;
    }
    if (next == weights_.size() || weight + left <= best_weight_ || --steps_ < 0) return;
    left -= weights_[next];
    bool hears_all = true;
    for (const std::size_t host : taken_) hears_all = hears_all && !deaf_[host][next];
    if (hears_all) {
      taken_.push_back(next);
      extend(next + 1, weight + weights_[next], left);
      taken_.pop_back();
    }
    extend(next + 1, weight, left);
  }

  std::vector<int> weights_;
  std::vector<std::vector<bool>> deaf_;
  std::vector<std::size_t> taken_;
  std::vector<std::size_t> best_;
  int best_weight_ = 0;
  int steps_ = 0;
};

}  // namespace

std::optional<VoteFact> Agreement::outcome(const Group& group) {
  const auto decided = group.words.decided();
  if (!decided) return std::nullopt;
  return VoteFact{.group = group.id, .kind = VoteFact::Kind::kDecided, .members = *decided};
}

// --- The proposer -------------------------------------------------------------------------------

void Agreement::step(const Group& group, Clock::time_point now) {
  Succession& words = group.words;
  const std::vector<int> there = words.hosts_there(group.hosts);
  const std::set<int> hosts(there.begin(), there.end());
  const bool leads = !there.empty() && there.front() == own_ && words.is_ready() &&
                     (words.outweighs(group.hosts, hosts) || words.may_go_alone());
  if (words.is_decided() || !leads) {
    attempts_.erase(group.id);
    return;
  }
  const Succession::Guard guard(words);
  if (!guard) return;
  Attempt& attempt = attempts_[group.id];
  if (attempt.ballot != 0 && words.promised() != attempt.ballot) {
    // Another host has proposed with a higher ballot, so this attempt is over.
    attempt = {.highest = words.promised(), .repeat_at = now + yield_of(own_)};
  }
  if (attempt.ballot == 0 && now < attempt.repeat_at) return;
  const bool in_vain = !attempt.proposes && attempt.promises.size() == attempt.asked.size();
  if (attempt.asked != hosts || (in_vain && now >= attempt.repeat_at)) {
    begin(group, attempt, hosts);
  } else if (now >= attempt.repeat_at) {
    ask(group, attempt);
  } else {
    return;
  }
  attempt.repeat_at = now + kRepeat;
}

void Agreement::begin(const Group& group, Attempt& attempt, std::set<int> hosts) {
  Succession& words = group.words;
  const std::uint64_t highest = std::max(attempt.highest, words.promised());
  attempt = {.ballot = ballot_after(highest, own_), .asked = std::move(hosts), .highest = highest};
  words.promise(attempt.ballot);
  attempt.promises[own_] = {.accepted = words.accepted(), .lost = unheard(words)};
  ask(group, attempt);
  if (attempt.promises.size() == attempt.asked.size()) propose(group, attempt);
}

// Sends the current question to all hosts that have not answered it yet.
void Agreement::ask(const Group& group, const Attempt& attempt) {
  for (const int host : attempt.asked) {
    if (host == own_) continue;
    if (!attempt.proposes && !attempt.promises.contains(host)) {
      send_(
          host,
          VoteFact{.group = group.id, .kind = VoteFact::Kind::kPrepare, .ballot = attempt.ballot});
    } else if (attempt.proposes && !attempt.agreeing.contains(host)) {
      send_(host,
            VoteFact{.group = group.id,
                     .kind = VoteFact::Kind::kAccept,
                     .ballot = attempt.ballot,
                     .members = attempt.proposed});
    }
  }
}

// Chooses the members to propose: those that some host has accepted, or else the members that are
// there on the heaviest set of hosts that all hear each other. Absent if these hosts do not
// outweigh the others.
std::optional<Members> Agreement::choose(const Group& group, const Attempt& attempt) const {
  std::optional<Vote> last;
  for (const auto& [host, promise] : attempt.promises) {
    if (promise.accepted && (!last || last->ballot < promise.accepted->ballot)) {
      last = promise.accepted;
    }
  }
  if (last) return last->members;
  const Members there = group.words.there();
  std::vector<int> hosts;
  std::vector<int> weights;
  for (const int host : group.words.hosts_there(group.hosts)) {
    if (!attempt.promises.contains(host)) continue;
    hosts.push_back(host);
    weights.push_back(members_of(host, there, group.hosts));
  }
  Hearing hearing(std::move(weights));
  for (std::size_t a = 0; a < hosts.size(); ++a) {
    for (std::size_t b = 0; b < hosts.size(); ++b) {
      if (misses(attempt.promises.at(hosts[a]).lost, there, group.hosts, hosts[b])) {
        hearing.part(a, b);
      }
    }
  }
  std::set<int> taken;
  for (const std::size_t i : hearing.heaviest()) taken.insert(hosts[i]);
  if (!group.words.may_go_alone() && !group.words.outweighs(group.hosts, taken)) {
    return std::nullopt;
  }
  Members chosen(there.size());
  for (std::size_t i = 0; i < there.size(); ++i) {
    chosen[i] = there[i] && taken.contains(group.hosts[i]);
  }
  return chosen;
}

void Agreement::propose(const Group& group, Attempt& attempt) {
  auto chosen = choose(group, attempt);
  if (!chosen) return;  // `step` asks all hosts again later
  attempt.proposes = true;
  attempt.proposed = std::move(*chosen);
  group.words.accept({.ballot = attempt.ballot, .members = attempt.proposed});
  attempt.agreeing = {own_};
  ask(group, attempt);
  conclude(group, attempt);
}

void Agreement::conclude(const Group& group, Attempt& attempt) {
  Succession& words = group.words;
  if (attempt.agreeing != attempt.asked) return;
  if (!words.may_go_alone() && !words.outweighs(group.hosts, attempt.asked)) return;
  words.decide(attempt.proposed);
  send_(kAllHosts, *outcome(group));
}

// --- Answers ------------------------------------------------------------------------------------

void Agreement::take(const Group& group, const VoteFact& fact, int from) {
  using Kind = VoteFact::Kind;
  Succession& words = group.words;
  const auto size = static_cast<std::size_t>(words.size());
  // Ignores a ballot that does not contain the number of the host that proposes it, and a host
  // without a member in the group.
  const bool proposes = fact.kind == Kind::kPrepare || fact.kind == Kind::kAccept;
  if (fact.ballot >> 62 != 0 || fact.other >> 62 != 0) return;
  if (proposes && (fact.ballot & kHostMask) != (static_cast<std::uint64_t>(from) & kHostMask))
    return;
  if (std::ranges::find(group.hosts, from) == group.hosts.end()) return;
  const Succession::Guard guard(words);
  if (!guard) return;
  if (fact.kind == Kind::kDecided || fact.kind == Kind::kThrough) {
    for (std::size_t i = 0; i < size; ++i) {
      if (group.hosts[i] == from) words.inform(static_cast<int>(i));
    }
    if (fact.kind == Kind::kThrough) return;
    if (words.is_decided() || fact.members.size() != size) return;
    words.decide(fact.members);
    send_(kAllHosts, *outcome(group));
    return;
  }
  const auto answer = [&](Kind kind) {
    return VoteFact{.group = group.id, .kind = kind, .ballot = fact.ballot};
  };
  if (proposes) {
    if (const auto decided = outcome(group)) return send_(from, *decided);
    if (fact.ballot < words.promised()) {
      auto refusal = answer(Kind::kRefused);
      refusal.other = words.promised();
      return send_(from, refusal);
    }
    words.promise(fact.ballot);
    if (fact.kind == Kind::kPrepare) {
      auto promise = answer(Kind::kPromise);
      if (const auto accepted = words.accepted()) {
        promise.other = accepted->ballot;
        promise.members = accepted->members;
      }
      promise.lost = unheard(words);
      return send_(from, promise);
    }
    if (fact.members.size() != size) return;
    words.accept({.ballot = fact.ballot, .members = fact.members});
    return send_(from, answer(Kind::kAccepted));
  }
  const auto found = attempts_.find(group.id);
  if (found == attempts_.end() || found->second.ballot != fact.ballot) return;
  Attempt& attempt = found->second;
  if (words.is_decided() || words.promised() != attempt.ballot || !attempt.asked.contains(from)) {
    return;
  }
  if (fact.kind == Kind::kRefused) {
    attempt = {.highest = fact.other, .repeat_at = Clock::now() + yield_of(own_)};
  } else if (fact.kind == Kind::kPromise && !attempt.proposes) {
    if (fact.lost.size() != size || (fact.other != 0 && fact.members.size() != size)) return;
    Promise& promise = attempt.promises[from];
    promise.lost = fact.lost;
    if (fact.other != 0) promise.accepted = Vote{.ballot = fact.other, .members = fact.members};
    if (attempt.promises.size() == attempt.asked.size()) propose(group, attempt);
  } else if (fact.kind == Kind::kAccepted && attempt.proposes) {
    attempt.agreeing.insert(from);
    conclude(group, attempt);
  }
}

}  // namespace hocket::control
