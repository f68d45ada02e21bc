// How the hosts of a group agree which of its members go on.
//
// Single-decree Paxos (Lamport, "Paxos made simple", 2001) with hosts for acceptors, as each has
// memory that outlives its ranks one by one. What a host has promised and accepted lies in the
// group's block (succession.h); whoever speaks for the host on its lanes acts for it.
//
//   proposer                                  acceptor
//   Prepare(b)   b above all seen        ->   if b >= promised: promised = b
//                                        <-   Promise(b, what it accepted, whom it cannot hear)
//   Accept(b, members)                   ->   if b >= promised: promised = b, accepted = it
//                                        <-   Accepted(b)
//   Decided(members)                     ->   all, who tell all others once
//
// Proposer is the host of the first member that is there, in each host's own view; where views
// differ, ballots settle it. It proposes when nobody is waited for any longer. It asks the hosts
// that have a member that is there, and waits for all of them; when one is lost meanwhile, it
// begins anew. What it proposes is what some of them accepted under the highest ballot; else the
// members who are there of the hosts that all hear each other (others could not work together), as
// many as there can be. Where these do not outweigh all others it proposes nothing, and asks again
// until more is known. It is decided once all whom it asked have accepted it and they outweigh all
// others (Succession::outweighs), or all who are there said that they go on alone.
//
// That all accept, and not just those who outweigh, is for hosts that end as a whole, and their
// votes with them: whoever of the others goes on has the vote as well. Two sets of hosts that both
// outweigh have a host in common, so there is one outcome; tests/model/hosts.pml has it checked.
//
// A host keeps the outcome until each other one has said that it knows it, or is through with the
// group, or is lost: who speaks for a host may end with the message in its hands.
//
// Messages may be lost, come twice or late: questions are asked again until they are answered.
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

// One process's part, for all its groups. A resource; one thread: whoever has the lanes.
class Agreement {
 public:
  using Clock = base::Deadline::Clock;
  // To one host; kAllHosts.
  using Send = std::function<void(int host, const Fact& fact)>;
  static constexpr int kAllHosts = -1;

  Agreement(int own_host, Send send) : own_(own_host), send_(std::move(send)) {}

  // A group of which somebody has come, as its block shows it. `hosts`: of each member. Values for
  // the length of a call.
  struct Group {
    std::uint64_t id;
    Succession& words;
    std::span<const int> hosts;
  };
  // Does what is to do now, where this host is the proposer.
  void step(const Group& group, Clock::time_point now);
  // Answers what `from` says.
  void take(const Group& group, const VoteFact& fact, int from);
  // Whether an answer is awaited, so that `step` wants to be called soon.
  bool is_busy() const noexcept { return !attempts_.empty(); }
  void forget(std::uint64_t id) { attempts_.erase(id); }
  template <typename Predicate>  // of a group's id
  void forget_unless(const Predicate& is_listed) {
    std::erase_if(attempts_, [&](const auto& attempt) { return !is_listed(attempt.first); });
  }
  // What a host is told that has just been connected, or has asked.
  static std::optional<VoteFact> outcome(const Group& group);

 private:
  struct Promise {
    std::optional<Vote> accepted;
    Members lost;
  };
  struct Attempt {
    std::uint64_t ballot = 0;  // 0: none under way
    std::set<int> asked;       // hosts
    std::map<int, Promise> promises;
    bool proposes = false;  // the second half
    Members proposed;
    std::set<int> agreeing;
    std::uint64_t highest = 0;  // ballot heard of
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
