// How the hosts of a job hear of each other: one authenticated lane for each pair of hosts, held by
// the first living rank of each, who speaks for it. When that one ends, or is seen to have no turn
// for a while (it was stopped, or its memory is being written to a file), the next takes over. It
// may come back: then both speak, which does no harm, as all that is said stays true.
//
// It carries what lies in the host's segment and matters elsewhere: who lives, what ended a group,
// who refused what, and, when asked for, who has announced which call. Arrays never come this way.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "foundation/base/deadline.h"
#include "foundation/os/fd.h"
#include "foundation/os/wakeup.h"
#include "membership/control/agreement.h"
#include "membership/control/host.h"
#include "membership/control/lane.h"
#include "membership/control/mirror.h"

namespace hocket::control {

// What a network is told. A value.
struct NetworkOptions {
  LaneIdentity identity;
  bool trust_network = false;           // no encryption between hosts
  std::vector<int> hosts;               // of each world rank
  std::vector<int> places;              // of each world rank, on this host
  std::vector<std::string> addresses;   // "host:port" of each world rank's listener
  std::vector<std::string> host_names;  // of each world rank, for messages
  Duration silence{};                   // after that much a host counts as lost
};

// What brings messages from other hosts, and what the network's thread does for it. A value.
struct CarrierHooks {
  int event_fd = -1;               // readable when something may have come since `arm` said true
  std::function<bool()> arm;       // false: something has come already
  std::function<bool()> pending;   // somebody has to call `progress`
  std::function<bool()> progress;  // true when something moved
  std::function<std::vector<int>()> take_broken;  // ranks it cannot reach any more; each once
  std::function<bool()> give_up;  // nobody can be reached any more; false: ask again
};

// Why two hosts do not reach each other. A value.
struct Unreached {
  bool was_refused = false;  // whoever called knows more than who waited for a call
  std::string text;          // names both ends; empty: they do
};

// A resource: the lanes and a thread. `establish` and `start` come first, once, in this order;
// `notify`, `arm` and `leave` are for any thread.
class Network {
 public:
  Network(NetworkOptions options, os::Fd listener);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Connects with the other hosts where this rank is the first of its own. Returns what is wrong.
  Unreached establish(base::Deadline deadline);
  void start(std::shared_ptr<HostControl> host, CarrierHooks carrier);
  // Has the thread look at what has changed in the segment.
  void notify() noexcept { wakeup_.notify(); }
  // See HostControl::set_arming.
  bool arm() noexcept;
  // After this rank has left: waits until the other hosts have been told, a moment at most.
  void leave() noexcept;

 private:
  using Clock = base::Deadline::Clock;
  // Another host.
  struct Peer {
    std::vector<int> ranks;                    // in the world, in order; at least one
    std::vector<std::unique_ptr<Lane>> lanes;  // usually one
    Clock::time_point lost_at{};               // when the last open one closed; zero: there is one
    std::set<int> refusing;                    // where nobody listens any more since: they ended
    std::size_t next_to_call = 0;              // of `ranks`
    Clock::time_point next_dial{};
  };
  struct Told {
    RankState state = RankState::kAbsent;
    bool end = false;
    bool operator==(const Told&) const = default;
  };

  bool is_first() const noexcept;
  bool speaks() const noexcept;
  bool is_mute(int place) const noexcept;
  void look_for_core_dumps() noexcept;
  bool reaches_all() const noexcept;
  int own_host() const noexcept;
  int host_of(const Peer& peer) const;
  std::string name_of(int rank) const;
  std::unique_ptr<Lane> dial(int rank, base::Deadline deadline);
  std::unique_ptr<rendezvous::Channel> make_channel(os::Fd socket, rendezvous::Side side);
  void accept_strangers();
  void adopt_strangers();
  void wait(Clock::duration longest);
  void unwatch() noexcept;
  void move_lanes();

  // The thread's.
  void run();
  void look();
  void help_carrier();
  void tell_ranks();
  void tell_groups();
  std::optional<CutFact> cut_at(int place) const;
  void tell_all(Lane& lane);
  void send_all(const Fact& fact);
  // Null: all but those where much waits already. What is left out is asked for again.
  void send(Lane* lane, const Bytes& frames);
  void tell(Lane* lane, const std::vector<Fact>& facts);
  // All, of what is told once only.
  void send_in_any_case(const Bytes& frames);
  // What this host knows of a group; nothing where it is taken off meanwhile.
  std::vector<Fact> announced(GroupEntry& entry, int place);
  std::vector<Fact> standing(GroupEntry& entry);
  void say_farewell(GroupEntry& entry);
  void agree(GroupEntry& entry);
  std::vector<int> hosts_of(const GroupMirror& group) const;
  void take(Peer& peer, std::span<const std::byte> payload);
  void take(Peer& peer, const Fact& fact);
  void take(Peer& peer, const CutFact& fact);
  void take_told(std::uint64_t group, const Fact& fact, int from);
  // The group's entry; where it has none so far, the fact is kept for whoever lists it.
  GroupEntry* find_or_keep(std::uint64_t group, const Fact& fact, int from);
  void take_broken();
  bool is_needed(const GroupEntry& entry) const;
  void take_vote(Peer& peer, const VoteFact& vote);
  void check(Peer& peer);
  void drop_closed(Peer& peer);
  void judge_loss(Peer& peer);
  void call_again(Peer& peer);
  void note_heard(const Peer& peer) noexcept;
  bool is_heard_here(const Peer& peer) const noexcept;
  void declare(const Peer& peer, RankState state, int rank);
  Clock::duration nap() const noexcept;
  Clock::duration patience() const;
  bool has_living(const Peer& peer) const noexcept;
  bool have_all_died(const Peer& peer) const noexcept;
  bool has_arrived(const Peer& peer) const noexcept;

  const NetworkOptions options_;
  os::Fd listener_;
  std::shared_ptr<rendezvous::TlsContext> client_tls_, server_tls_;
  os::Wakeup wakeup_;
  os::Fd events_;  // an epoll of the carrier's descriptor, while it is armed
  std::mutex watch_mutex_;
  bool watches_ = false;       // whether it is there; guarded by watch_mutex_
  std::map<int, Peer> peers_;  // by host
  std::vector<std::unique_ptr<Lane>> strangers_;
  std::shared_ptr<HostControl> host_;
  CarrierHooks carrier_;
  std::vector<int> place_hosts_;  // of each place: its host's number
  Agreement agreement_;
  std::vector<Told> told_;                   // of each place
  bool given_up_ = false;                    // the carrier has been
  std::map<int, Clock::time_point> broken_;  // ranks that the carrier cannot reach, since when
  Clock::time_point accepts_from_{};         // when to look for strangers again
  std::atomic<bool> stop_{false};
  std::atomic<int> leaving_{0};  // 1: this rank has left; 2: and its host-mates, or they stay
  std::atomic<int> left_{0};     // the same, as the others have been told
  std::thread thread_;
};

}  // namespace hocket::control
