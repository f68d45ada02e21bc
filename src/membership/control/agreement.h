// The hosts of a group agree which of its members go on.
//
// The protocol is single-decree Paxos (Lamport, "Paxos made simple", 2001). Hosts are the
// acceptors, as each has memory that outlives its single ranks. A host's promises and accepted
// votes are in the group's block (succession.h). The rank that speaks for the host on its lanes
// acts for it.
//
//   proposer                                  acceptor
//   Prepare(b)   b above all seen        ->   if b >= promised: promised = b
//                                        <-   Promise(b, accepted vote, members it cannot hear)
//   Accept(b, members)                   ->   if b >= promised: promised = b, accepted = it
//                                        <-   Accepted(b)
//   Decided(members)                     ->   all, which tell all others once
//
// The proposer is the host of the first member that is there, in each host's own view. If views
// differ, ballots settle it. It proposes when no member is waited for any longer. It asks the hosts
// with a member that is there, and waits for all of them. If one is lost meanwhile, it starts
// again.
//
// It proposes the members that some host accepted under the highest ballot. If there are none, it
// proposes the members that are there on hosts that all hear each other, as many as possible; other
// hosts could not work together. If these do not outweigh all others, it proposes nothing, and asks
// again until more is known. The proposal is decided once all asked hosts have accepted it, if they
// outweigh all others (Succession::outweighs), or if all their members said that they go on alone.
//
// All asked hosts must accept, not only a majority, because a host may end as a whole, and its vote
// with it. The vote is then still on every other host that goes on. Two sets of hosts that both
// outweigh have a common host, so there is one outcome; tests/model/hosts.pml checks this.
//
// A host keeps the outcome until each other host has said that it knows it or has left the group,
// or is lost. The rank that speaks for a host may end before it has passed the message on.
//
// Messages may be lost, or come twice or late: questions are repeated until they are answered.
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

// One process's part, for all its groups. A resource; for the one thread that has the lanes.
class Agreement {
 public:
  using Clock = base::Deadline::Clock;
  // Sends to one host, or to kAllHosts.
  using Send = std::function<void(int host, const Fact& fact)>;
  static constexpr int kAllHosts = -1;

  Agreement(int own_host, Send send) : own_(own_host), send_(std::move(send)) {}

  // A group to which a member has come, as its block shows it. `hosts` has each member's host.
  // Values for the length of a call.
  struct Group {
    std::uint64_t id;
    Succession& words;
    std::span<const int> hosts;
  };
  // Does the next step, if this host is the proposer.
  void step(const Group& group, Clock::time_point now);
  // Answers a message of host `from`.
  void take(const Group& group, const VoteFact& fact, int from);
  // True if an answer is awaited, so that `step` should be called soon.
  bool is_busy() const noexcept { return !attempts_.empty(); }
  void forget(std::uint64_t id) { attempts_.erase(id); }
  template <typename Predicate>  // of a group's id
  void forget_unless(const Predicate& is_listed) {
    std::erase_if(attempts_, [&](const auto& attempt) { return !is_listed(attempt.first); });
  }
  // Returns the message for a host that has just been connected, or has asked.
  static std::optional<VoteFact> outcome(const Group& group);

 private:
  struct Promise {
    std::optional<Vote> accepted;
    Members lost;
  };
  struct Attempt {
    std::uint64_t ballot = 0;  // 0: none in progress
    std::set<int> asked;       // hosts
    std::map<int, Promise> promises;
    bool proposes = false;  // in the second half, Accept
    Members proposed;
    std::set<int> agreeing;
    std::uint64_t highest = 0;  // highest ballot heard of
    Clock::time_point repeat_at{};
  };
  void begin(const Group& group, Attempt& attempt, std::set<int> hosts);
  void propose(const Group& group, Attempt& attempt);
  void conclude(const Group& group, Attempt& attempt);
  void ask(const Group& group, const Attempt& attempt);
  std::optional<Members> choose(const Group& group, const Attempt& attempt) const;

  const int own_;
  const Send send_;
  std::map<std::uint64_t, Attempt> attempts_;  // by group
};

}  // namespace hocket::control
