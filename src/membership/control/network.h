// The exchange of facts between the hosts of a job.
//
//   host 0: rank 0 (speaks), 1, 2  <--- lane --->  host 1: rank 3 (speaks), 4, 5
//
// Each pair of hosts has one authenticated lane. The first living rank of each host holds it, and
// speaks for the host. If this rank ends, or does not run for a while (it is stopped, or its core
// dump is being written), the next rank takes over. If the first rank runs again, both speak. This
// is harmless, because all facts stay true.
//
// Lanes carry the facts of the host's segment that matter to other hosts: which ranks live, why
// groups have ended, refusals and, on request, announced calls. Lanes never carry arrays.
#pragma once

#include <algorithm>
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
#include "membership/control/host/host.h"
#include "membership/control/lane.h"
#include "membership/control/mirror.h"

namespace hocket::control {

// Settings of a network. A value.
struct NetworkOptions {
  LaneIdentity identity;
  bool trust_network = false;           // true: no encryption between hosts
  std::vector<int> hosts;               // the host of each world rank
  std::vector<int> places;              // the place of each world rank on this host
  std::vector<std::string> addresses;   // "host:port" of each world rank's listener
  std::vector<std::string> host_names;  // the host name of each world rank, for messages
  Duration silence{};                   // a host that sends nothing for this long counts as lost
};

// The functions of the carrier of messages that the network's thread calls. A value. See
// engine::Carrier.
struct CarrierHooks {
  int event_fd = -1;                              // see engine::Carrier::event_fd; -1: none
  std::function<bool()> arm;                      // returns false if something has arrived already
  std::function<bool()> pending;                  // returns whether `progress` must be called
  std::function<bool()> progress;                 // returns whether anything moved
  std::function<std::vector<int>()> take_broken;  // ranks with broken connections; each once
  std::function<bool()> give_up;  // once all other ranks have died; false: call it again
};

// The reason why two hosts cannot reach each other. A value.
struct Unreached {
  bool was_refused = false;  // this host could not connect; false: it waited in vain
  std::string text;          // names both hosts; empty: they reach each other
};

// A resource: the lanes of one rank, and a thread. First one thread calls `establish` and `start`,
// once each, in this order. After that any thread may call `notify`, `arm` and `leave`.
class Network {
 public:
  Network(NetworkOptions options, os::Fd listener);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Connects this host with the other hosts, if this rank is the first on its host. Each host of a
  // pair tries to reach the other. Meanwhile it calls `carrier` until this returns true. Takes ten
  // seconds at most. Returns why some host cannot be reached.
  Unreached establish(
      base::Deadline deadline, const std::function<bool()>& carrier = [] { return true; });
  void start(std::shared_ptr<HostControl> host, CarrierHooks carrier);
  // Makes the thread look for news in the segment.
  void notify() noexcept { wakeup_.notify(); }
  // See Doorbells::set_arming.
  bool arm() noexcept;
  // Waits until the other hosts know that this rank has left the job; for about a second at most.
  // Call it after the rank has left.
  void leave() noexcept;
  // Ends the thread because the process exits. OpenSSL's own exit handler may run next, and no
  // thread may use OpenSSL after that. Waits for a second at most, because the thread may need a
  // lock that this thread holds.
  void stop_at_exit() noexcept;

 private:
  class Establishing;
  using Clock = base::Deadline::Clock;
  // Another host.
  struct Peer {
    std::vector<int> ranks;                    // its world ranks, in ascending order; at least one
    std::vector<std::unique_ptr<Lane>> lanes;  // usually one
    // The time when the last open lane closed. Zero: a lane is open.
    Clock::time_point lost_at{};
    // Ranks that have refused a connection since then. They have ended.
    std::set<int> refusing;
    std::size_t next_to_call = 0;  // index in `ranks`
    Clock::time_point next_dial{};

    bool has_open_lane() const noexcept {
      return std::ranges::any_of(lanes, [](const auto& lane) { return lane->is_open(); });
    }
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

  // The functions from here on run only in the network's thread.
  void run();
  void look();
  void help_carrier();
  std::vector<int> places_with_news() const;
  bool tell_ranks();
  void tell_groups();
  std::optional<CutFact> cut_at(int place) const;
  void tell_all(Lane& lane);
  void send_all(const Fact& fact);
  // Sends frames on one lane. If `lane` is null, sends them on all lanes except those with long
  // queues. Other hosts request data again that they have missed in this way.
  void send(Lane* lane, const Bytes& frames);
  void tell(Lane* lane, const std::vector<Fact>& facts);
  // Sends frames on all lanes, however long their queues are. It is for facts that are sent only
  // once.
  void send_in_any_case(const Bytes& frames);
  // Return this host's facts about a group: `announced` those about members' calls, `standing` the
  // others. Empty if another process removes the group meanwhile.
  std::vector<Fact> announced(GroupEntry& entry, int place);
  std::vector<Fact> standing(GroupEntry& entry);
  void say_farewell(GroupEntry& entry);
  void agree(GroupEntry& entry);
  std::vector<int> hosts_of(const GroupMirror& group) const;
  void take(Peer& peer, std::span<const std::byte> payload);
  void take(Peer& peer, const Fact& fact);
  void take(Peer& peer, const CutFact& fact);
  void take_told(std::uint64_t group, const Fact& fact, int from);
  // Returns the entry of a group. If the group is not listed yet, keeps the fact for the rank that
  // will list it, and returns null.
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
  void ask_to_stop() noexcept;
  bool has_arrived(const Peer& peer) const noexcept;

  const NetworkOptions options_;
  os::Fd listener_;
  std::shared_ptr<rendezvous::TlsContext> client_tls_, server_tls_;
  os::Wakeup wakeup_;
  os::Fd events_;  // an epoll instance for the carrier's descriptor, while it is armed
  std::mutex watch_mutex_;
  bool watches_ = false;       // `events_` has the descriptor; guarded by watch_mutex_
  std::map<int, Peer> peers_;  // by host number
  std::vector<std::unique_ptr<Lane>> strangers_;
  std::vector<os::Fd> calls_;  // unfinished connections of `establish`
  std::shared_ptr<HostControl> host_;
  CarrierHooks carrier_;
  std::vector<int> place_hosts_;  // the host number of each place
  Agreement agreement_;
  std::vector<Reported> told_;               // what was told about the rank at each place
  bool given_up_ = false;                    // whether carrier_.give_up has succeeded
  std::map<int, Clock::time_point> broken_;  // ranks that the carrier cannot reach, and since when
  Clock::time_point accepts_from_{};         // before this time, accept no connections
  std::atomic<bool> stop_{false};
  std::atomic<bool> has_stopped_{false};
  // 1: this rank has left. 2: it has also waited for the other ranks of its host.
  std::atomic<int> leaving_{0};
  std::atomic<int> left_{0};  // the value of leaving_ that other hosts know
  std::thread thread_;
};

}  // namespace hocket::control
