// The exchange of facts between the hosts of a job. Each pair of hosts has one authenticated lane.
// The first living rank of each host holds it, and speaks for the host. If that rank ends, or has
// no turn for a while (stopped, or being written to a core file), the next takes over. The first
// may come back. Then both speak, which is harmless, as all facts stay true.
//
// Lanes carry facts from the host's segment that matter elsewhere: living ranks, causes of groups'
// ends, refusals and, on request, announced calls. Arrays never come this way.
//
//   host 0: rank 0 (speaks), 1, 2  <--- lane --->  host 1: rank 3 (speaks), 4, 5
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
#include <string_view>
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

// Settings of a network. A value.
struct NetworkOptions {
  LaneIdentity identity;
  bool trust_network = false;           // no encryption between hosts
  std::vector<int> hosts;               // of each world rank
  std::vector<int> places;              // of each world rank, on this host
  std::vector<std::string> addresses;   // "host:port" of each world rank's listener
  std::vector<std::string> host_names;  // of each world rank, for messages
  Duration silence{};                   // after this time without a sign a host counts as lost
};

// The carrier of messages from other hosts, and its functions for the network's thread. A value.
struct CarrierHooks {
  int event_fd = -1;               // readable when data may have come since `arm` returned true
  std::function<bool()> arm;       // false: data has already come
  std::function<bool()> pending;   // true if `progress` has to be called
  std::function<bool()> progress;  // true when something moved
  std::function<std::vector<int>()> take_broken;  // ranks that it can no longer reach; each once
  std::function<bool()> give_up;  // no rank can be reached any more; false: ask again
};

// The reason why two hosts do not reach each other. A value.
struct Unreached {
  bool was_refused = false;  // the caller knows more than the host that waited for a call
  std::string text;          // names both ends; empty: they reach each other
};

// A resource: the lanes and a thread. `establish` and `start` come first, once, in this order;
// `notify`, `arm` and `leave` are for any thread.
class Network {
 public:
  Network(NetworkOptions options, os::Fd listener);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Connects with the other hosts if this rank is the first on its host: each tries to reach the
  // other. Meanwhile it calls `carrier` until that returns true, for ten seconds at most. Returns
  // the lanes' error.
  Unreached establish(
      base::Deadline deadline, const std::function<bool()>& carrier = [] { return true; });
  void start(std::shared_ptr<HostControl> host, CarrierHooks carrier);
  // Makes the thread look for changes in the segment.
  void notify() noexcept { wakeup_.notify(); }
  // See HostControl::set_arming.
  bool arm() noexcept;
  // Called after this rank has left: waits a moment at most until the other hosts know.
  void leave() noexcept;

 private:
  class Establishing;
  using Clock = base::Deadline::Clock;
  // Another host.
  struct Peer {
    std::vector<int> ranks;                    // in the world, in order; at least one
    std::vector<std::unique_ptr<Lane>> lanes;  // usually one
    // time when the last open one closed; zero: one is open
    Clock::time_point lost_at{};
    // ranks whose listener is gone since then: they ended
    std::set<int> refusing;
    std::size_t next_to_call = 0;  // of `ranks`
    Clock::time_point next_dial{};
  };
  struct Reported {
    RankState state = RankState::kAbsent;
    bool end = false;
    bool operator==(const Reported&) const = default;
  };

  bool is_first() const noexcept;
  bool speaks() const noexcept;
  bool is_mute(int place) const noexcept;
  void look_for_core_dumps() noexcept;
  bool reaches_all() const noexcept;
  int own_host() const noexcept;
  int host_of(const Peer& peer) const;
  std::string name_of(int rank) const;
  std::vector<std::string> whereabouts() const;
  std::string unreached(int rank, std::string_view why) const;
  std::unique_ptr<Lane> dial(int rank, base::Deadline deadline);
  std::unique_ptr<Lane> make_lane(os::Fd socket);
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
  // Null: all lanes except those with long queues. Data that is left out will be requested again.
  void send(Lane* lane, const Bytes& frames);
  void tell(Lane* lane, const std::vector<Fact>& facts);
  // Sends on all lanes, for facts that are sent only once.
  void send_in_any_case(const Bytes& frames);
  // This host's facts about a group; empty if the group is removed meanwhile.
  std::vector<Fact> announced(GroupEntry& entry, int place);
  std::vector<Fact> standing(GroupEntry& entry);
  void say_farewell(GroupEntry& entry);
  void agree(GroupEntry& entry);
  std::vector<int> hosts_of(const GroupMirror& group) const;
  void take(Peer& peer, std::span<const std::byte> payload);
  void take(Peer& peer, const Fact& fact);
  void take(Peer& peer, const CutFact& fact);
  void take_told(std::uint64_t group, const Fact& fact, int from);
  // The group's entry. If it has none yet, the fact is kept for the rank that lists it.
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
  std::vector<os::Fd> calls_;  // connections that are being made at the start
  std::shared_ptr<HostControl> host_;
  CarrierHooks carrier_;
  std::vector<int> place_hosts_;  // of each place: its host's number
  Agreement agreement_;
  std::vector<Reported> told_;               // of each place
  bool given_up_ = false;                    // the carrier has been
  std::map<int, Clock::time_point> broken_;  // ranks that the carrier cannot reach, since when
  Clock::time_point accepts_from_{};         // time of the next look for strangers
  std::atomic<bool> stop_{false};
  // 1: this rank has left; 2: and the others of its host have, or stay
  std::atomic<int> leaving_{0};
  std::atomic<int> left_{0};  // the same value, once the others know
  std::thread thread_;
};

}  // namespace hocket::control
