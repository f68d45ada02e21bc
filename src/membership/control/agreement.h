// Agreement of a group's hosts on the members that go on, when ranks call `rebuild` after a loss.
//
// The protocol is single-decree Paxos (Lamport, "Paxos made simple", 2001). The hosts are the
// acceptors, because the memory of a host outlives its single ranks. A host's promises and accepted
// votes are in the group's block (succession.h). The rank that speaks for a host on its lanes acts
// for the host.
//
//   proposer                                  acceptor
//   Prepare(b)   b above all seen        ->   if b >= promised: promised = b
//                                        <-   Promise(b, accepted vote, members it cannot hear)
//   Accept(b, members)                   ->   if b >= promised: promised = b, accepted = members
//                                        <-   Accepted(b)
//   Decided(members)                     ->   all hosts; each of them tells all others once
//
// A member is *there* if it has called `rebuild` and can be reached (Succession::is_there). The
// proposer is the host of the first member that is there. Each host judges this by its own view. If
// views differ, several hosts propose, and the ballots decide between them. A proposer begins when
// no member is waited for any longer. It asks all hosts that have a member that is there, and waits
// for all of them. If one of them is lost meanwhile, it starts again.
//
// It proposes the members that some host has accepted under the highest ballot. If no host has
// accepted any, it proposes members that are there. It takes the heaviest set of hosts that all
// hear each other, because other hosts could not work together. If these hosts do not outweigh all
// others, it proposes nothing, and asks again until it knows more.
//
// The proposal is decided once all asked hosts have accepted it. In addition, one of two conditions
// must hold: these hosts outweigh all others (Succession::outweighs), or every member that is there
// has said that it may go on alone.
//
// All asked hosts must accept, not only a majority. The reason is that a host may end as a whole,
// and its vote with it. The vote then still exists on every other host that goes on. Two sets of
// hosts that both outweigh the rest have a common host, so there is one outcome.
// tests/model/hosts.pml checks this.
//
// A host keeps the outcome until each other host has said that it knows the outcome or has left the
// group, or is lost. Otherwise the outcome could be lost: the rank that speaks for a host may end
// before it has passed the outcome on.
//
// Messages may be lost, and may arrive twice or late. So questions are repeated until they are
// answered.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <span>

#include "foundation/base/deadline.h"
#include "membership/control/facts.h"
#include "membership/control/succession.h"

namespace hocket::control {

// One process's part in the agreements of all its groups. A resource. Only the network's thread
// uses it.
class Agreement {
 public:
  using Clock = base::Deadline::Clock;
  // Sends a fact to one host, or to kAllHosts.
  using Send = std::function<void(int host, const Fact& fact)>;
  static constexpr int kAllHosts = -1;

  Agreement(int own_host, Send send) : own_(own_host), send_(std::move(send)) {}

  // A group in which a member has called `rebuild`, as its block shows. `hosts` has the host of
  // each member. Valid during one call.
  struct Group {
    std::uint64_t id;
    Succession& words;
    std::span<const int> hosts;
  };
  // Makes the next step if this host is the proposer.
  void step(const Group& group, Clock::time_point now);
  // Handles a message of host `from`, and answers it if it is a question.
  void take(const Group& group, const VoteFact& fact, int from);
  // Returns whether this host is a proposer that waits for answers. `step` should then be called
  // soon.
  bool is_busy() const noexcept { return !attempts_.empty(); }
  void forget(std::uint64_t id) { attempts_.erase(id); }
  template <typename Predicate>  // gets a group's id
  void forget_unless(const Predicate& is_listed) {
    std::erase_if(attempts_, [&](const auto& attempt) { return !is_listed(attempt.first); });
  }
  // Returns the message that tells the outcome, for a host that has just connected or has asked.
  // Absent: there is no outcome yet.
  static std::optional<VoteFact> outcome(const Group& group);

 private:
  struct Promise {
    std::optional<Vote> accepted;
    Members lost;
  };
  struct Attempt {
    std::uint64_t ballot = 0;  // 0: none in progress
    std::set<int> asked;       // the hosts that were asked
    std::map<int, Promise> promises;
    bool proposes = false;  // the promises are there; Accept was sent
    Members proposed;
    std::set<int> agreeing;
    std::uint64_t highest = 0;  // the highest ballot that this host has heard of
    Clock::time_point repeat_at{};
  };
  void begin(const Group& group, Attempt& attempt, std::set<int> hosts);
  void propose(const Group& group, Attempt& attempt);
  void conclude(const Group& group, Attempt& attempt);
  void ask(const Group& group, const Attempt& attempt);
  std::optional<Members> choose(const Group& group, const Attempt& attempt) const;

  const int own_;
  const Send send_;
  std::map<std::uint64_t, Attempt> attempts_;  // by the group's id
};

}  // namespace hocket::control
