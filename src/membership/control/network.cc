#include "membership/control/network.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "foundation/base/poll.h"
#include "foundation/base/threads.h"
#include "foundation/os/process/process_exit.h"
#include "foundation/os/process/scheduling.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/error.h"
#include "membership/control/kept_facts.h"

namespace hocket::control {

using base::Deadline;
using rendezvous::Side;
using std::chrono::milliseconds;

namespace {

constexpr auto kForLeaving = milliseconds(1000);
constexpr auto kForMates = milliseconds(100);
constexpr auto kLeavingNap = std::chrono::microseconds(200);
constexpr auto kForATurn = milliseconds(50);  // in this time a woken network thread should have run
constexpr auto kLongestNap = milliseconds(500);

os::Fd make_epoll() {
  os::Fd made(::epoll_create1(EPOLL_CLOEXEC));
  if (!made) throw SystemError("cannot make an epoll", errno);
  return made;
}

}  // namespace

Network::Network(NetworkOptions options, os::Fd listener)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      events_(make_epoll()),
      place_hosts_(options_.places.size()),
      agreement_(own_host(), [this](int host, const Fact& fact) {
        if (host == Agreement::kAllHosts) return send_all(fact);
        const auto peer = peers_.find(host);
        if (peer == peers_.end()) return;
        const Bytes frame = encode(fact);
        for (const auto& lane : peer->second.lanes) lane->send(frame);
      }) {
  for (std::size_t rank = 0; rank < options_.places.size(); ++rank) {
    place_hosts_[static_cast<std::size_t>(options_.places[rank])] = options_.hosts[rank];
  }
  if (!options_.trust_network) {
    client_tls_ = rendezvous::make_tls_context(Side::kClient, options_.identity.key);
    server_tls_ = rendezvous::make_tls_context(Side::kServer, options_.identity.key);
  }
  for (std::size_t rank = 0; rank < options_.hosts.size(); ++rank) {
    if (options_.hosts[rank] != own_host()) {
      peers_[options_.hosts[rank]].ranks.push_back(static_cast<int>(rank));
    }
  }
}

Network::~Network() {
  ask_to_stop();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Network::ask_to_stop() noexcept {
  stop_.store(true, std::memory_order_release);
  wakeup_.notify();
}

void Network::stop_at_exit() noexcept {
  if (!thread_.joinable() || thread_.get_id() == std::this_thread::get_id()) return;
  ask_to_stop();
  const auto has_stopped = [this] { return has_stopped_.load(std::memory_order_acquire); };
  base::poll_until(has_stopped, Deadline::in(kForLeaving), kLeavingNap);
}

int Network::own_host() const noexcept {
  return options_.hosts[static_cast<std::size_t>(options_.identity.rank)];
}

bool Network::is_first() const noexcept {
  return options_.places[static_cast<std::size_t>(options_.identity.rank)] == 0;
}

std::string Network::name_of(int rank) const {
  const auto r = static_cast<std::size_t>(rank);
  return fmt::format("rank {} on {} ({})", rank, options_.host_names[r], options_.addresses[r]);
}

// Returns the machine and address of the rank at each place, as text. Empty for this host's ranks.
std::vector<std::string> Network::whereabouts() const {
  std::vector<std::string> texts(options_.places.size());
  for (std::size_t rank = 0; rank < options_.places.size(); ++rank) {
    if (options_.hosts[rank] == own_host()) continue;
    texts[static_cast<std::size_t>(options_.places[rank])] =
        fmt::format("on {} ({})", options_.host_names[rank], options_.addresses[rank]);
  }
  return texts;
}

// --- The thread ---------------------------------------------------------------------------------

void Network::start(std::shared_ptr<HostControl> host, CarrierHooks carrier) {
  host_ = std::move(host);
  carrier_ = std::move(carrier);
  told_.resize(static_cast<std::size_t>(host_->places()));
  host_->remote_hosts.set_hosts(place_hosts_);
  host_->remote_hosts.set_whereabouts(whereabouts());
  for (auto& [number, peer] : peers_) {
    for (const auto& lane : peer.lanes) tell_all(*lane);
  }
  thread_ = base::start_thread("hocket-net", [this] { run(); });
}

bool Network::arm() noexcept {
  if (carrier_.event_fd < 0) return true;
  if (!carrier_.arm()) return false;
  const std::lock_guard lock(watch_mutex_);
  epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {}};
  const int operation = watches_ ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  watches_ = ::epoll_ctl(events_.get(), operation, carrier_.event_fd, &event) == 0;
  return true;
}

// Stops watching the carrier's descriptor. Otherwise each packet would cost an epoll notification.
// If another thread has armed the descriptor at the same time, the doorbell wakes this thread for
// nothing.
void Network::unwatch() noexcept {
  const std::lock_guard lock(watch_mutex_);
  ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, carrier_.event_fd, nullptr);
  watches_ = false;
}

void Network::run() {
  os::take_short_turns();
  while (!stop_.load(std::memory_order_acquire)) {
    host_->remote_hosts.note_seen(host_->self());
    wait(patience());
    host_->remote_hosts.note_seen(host_->self());
    move_lanes();
    look();
    for (auto& [number, peer] : peers_) check(peer);
    help_carrier();
    take_broken();
  }
  has_stopped_.store(true, std::memory_order_release);
}

// Returns the longest sleep of the network thread.
Network::Clock::duration Network::nap() const noexcept {
  return std::min<Clock::duration>(options_.silence / 8, kLongestNap);
}

// Returns the time after which the thread looks again, if nothing wakes it.
Network::Clock::duration Network::patience() const {
  if (!given_up_ && carrier_.pending && carrier_.pending()) return milliseconds(1);
  auto patience = nap();
  if (agreement_.is_busy()) patience = std::min<Clock::duration>(patience, milliseconds(10));
  for (int place = 0; place < host_->ranks(); ++place) {
    if (host_->liveness.state(place) == RankState::kDied && !host_->liveness.has_end(place) &&
        told_[static_cast<std::size_t>(place)].state != RankState::kDied) {
      patience = std::min<Clock::duration>(patience, milliseconds(1));
    }
  }
  for (const auto& [number, peer] : peers_) {
    if (peer.lost_at != Clock::time_point{} && has_living(peer)) {
      patience = std::min<Clock::duration>(patience, milliseconds(10));
    }
  }
  if (!broken_.empty()) patience = std::min<Clock::duration>(patience, milliseconds(100));
  return patience;
}

void Network::help_carrier() {
  if (!carrier_.progress || given_up_) return;
  // If all other ranks have died, no message can come. UCX 1.13 may abort the process if it makes
  // progress on connections to dead processes.
  if (carrier_.give_up && std::all_of(peers_.begin(), peers_.end(), [this](const auto& entry) {
        return have_all_died(entry.second);
      })) {
    given_up_ = carrier_.give_up();
    return;
  }
  // Call `progress` at least once, because the carrier may have sent only a part of a frame.
  carrier_.progress();
  for (int i = 0; i < 100 && carrier_.pending() && carrier_.progress(); ++i) {
  }
}

// Returns whether this rank speaks for its host: no earlier rank of the host is alive and runs. A
// rank that has left still speaks until the other hosts know it.
bool Network::speaks() const noexcept {
  for (int place = 0; place < host_->ranks(); ++place) {
    if (place == host_->self()) return true;
    if (host_->liveness.state(place) <= RankState::kAlive && !is_mute(place)) return false;
  }
  return false;
}

// Returns whether the network thread of the rank at `place` has not run for too long: for a quarter
// of the time after which other hosts consider this host lost. The rest of the time is needed to
// make new lanes. For a halted process 50 ms are enough.
bool Network::is_mute(int place) const noexcept {
  const auto since = host_->remote_hosts.since_seen(place);
  if (!since || *since < kForATurn) return false;
  return *since > options_.silence / 4 ||
         os::is_halted(host_->liveness.pid(place), host_->liveness.start(place));
}

// Looks for ranks of this host whose core dump the kernel is writing. Ranks of other hosts may be
// waiting for them.
void Network::look_for_core_dumps() noexcept {
  for (int place = 0; place < host_->ranks(); ++place) {
    const auto since = host_->remote_hosts.since_seen(place);
    if (since && *since > nap()) host_->liveness.look_for_core_dump(place);
  }
}

bool Network::reaches_all() const noexcept {
  return std::all_of(peers_.begin(), peers_.end(), [this](const auto& entry) {
    return !has_living(entry.second) || entry.second.has_open_lane();
  });
}

bool Network::has_living(const Peer& peer) const noexcept {
  return std::any_of(peer.ranks.begin(), peer.ranks.end(), [this](int rank) {
    return may_live(host_->liveness.state(options_.places[static_cast<std::size_t>(rank)]));
  });
}

bool Network::have_all_died(const Peer& peer) const noexcept {
  return std::all_of(peer.ranks.begin(), peer.ranks.end(), [this](int rank) {
    return host_->liveness.state(options_.places[static_cast<std::size_t>(rank)]) >
           RankState::kLeft;
  });
}

void Network::look() {
  // Read before the facts below are sent: they then include that this rank has left.
  const int leaving = leaving_.load(std::memory_order_acquire);
  bool has_lanes = false;
  for (const auto& [number, peer] : peers_) has_lanes = has_lanes || !peer.lanes.empty();
  if (!speaks() && !has_lanes) return;
  const bool is_all_sent = tell_ranks();
  tell_groups();
  // A rank that has just begun to speak for its host may not have lanes to all hosts yet.
  const bool all_told =
      is_all_sent && std::all_of(peers_.begin(), peers_.end(), [this](const auto& entry) {
        const auto is_heard = [](const auto& lane) { return !lane->is_open() || lane->is_heard(); };
        if (has_living(entry.second) && !entry.second.has_open_lane()) return false;
        return std::ranges::all_of(entry.second.lanes, is_heard);
      });
  if (all_told) left_.store(leaving, std::memory_order_release);
}

// Returns whether members on this host use the group, or other hosts may still ask for the outcome
// of its agreement.
bool Network::is_needed(const GroupEntry& entry) const {
  if (host_->memory.is_held(entry.block.load(std::memory_order_relaxed))) return true;
  const auto group = GroupMirror::of(*host_, entry);
  return group && group->succession(nullptr).owes_outcome();
}

std::vector<int> Network::hosts_of(const GroupMirror& group) const {
  std::vector<int> hosts;
  for (int member = 0; member < group.size(); ++member) {
    const auto place = static_cast<std::size_t>(group.place(member));
    hosts.push_back(place < place_hosts_.size() ? place_hosts_[place] : -1);
  }
  return hosts;
}

// Takes part in the agreement on the members that go on, if a member has called `rebuild` and this
// rank speaks for its host.
void Network::agree(GroupEntry& entry) {
  if (!speaks()) return;
  const auto group = GroupMirror::of(*host_, entry);
  if (!group) return;
  Succession words = group->succession(&entry);
  if (words.is_decided() || !words.anybody_came()) return agreement_.forget(group->id());
  const std::vector<int> hosts = hosts_of(*group);
  if (!group->is_listed(entry)) return;
  agreement_.step({group->id(), words, hosts}, Agreement::Clock::now());
}

void Network::take_vote(Peer& peer, const VoteFact& vote) {
  const bool tells = vote.kind == VoteFact::Kind::kDecided;
  const int from = host_of(peer);
  GroupEntry* entry = tells ? find_or_keep(vote.group, vote, from) : host_->groups.find(vote.group);
  if (entry == nullptr && tells) {
    const Bytes frame = encode(VoteFact{.group = vote.group, .kind = VoteFact::Kind::kThrough});
    for (const auto& lane : peer.lanes) lane->send(frame);
  }
  if (entry == nullptr) return;
  const auto group = GroupMirror::of(*host_, *entry);
  if (!group) return;
  Succession words = group->succession(entry);
  const std::vector<int> hosts = hosts_of(*group);
  agreement_.take({group->id(), words, hosts}, vote, from);
}

// --- Incoming frames ----------------------------------------------------------------------------

void Network::take(Peer& peer, std::span<const std::byte> payload) {
  const auto fact = parse(payload);
  if (fact && host_) take(peer, *fact);
}

void Network::take(Peer& peer, const Fact& fact) {
  if (const auto group = told_group(fact)) return take_told(*group, fact, host_of(peer));
  if (const auto* ranks = std::get_if<RanksFact>(&fact)) {
    for (const RankFact& rank : ranks->ranks) {
      // A host may report only its own ranks.
      if (std::find(peer.ranks.begin(), peer.ranks.end(), rank.world_rank) == peer.ranks.end()) {
        continue;
      }
      host_->remote_hosts.record(options_.places[static_cast<std::size_t>(rank.world_rank)], rank);
    }
  } else if (const auto* question = std::get_if<Question>(&fact)) {
    look_for_core_dumps();
    if (GroupEntry* entry = host_->groups.find(question->group)) {
      for (const auto& lane : peer.lanes) {
        tell(lane.get(), announced(*entry, -1));
        tell(lane.get(), standing(*entry));
      }
    }
  } else if (const auto* cut = std::get_if<CutFact>(&fact)) {
    take(peer, *cut);
  } else if (const auto* vote = std::get_if<VoteFact>(&fact)) {
    take_vote(peer, *vote);
  }
}

int Network::host_of(const Peer& peer) const {
  return options_.hosts[static_cast<std::size_t>(peer.ranks.front())];
}

GroupEntry* Network::find_or_keep(std::uint64_t group, const Fact& fact, int from) {
  GroupEntry* entry = host_->groups.find(group);
  if (entry != nullptr || host_->groups.gone().knows(group)) return entry;
  host_->groups.forerunners().keep(group, fact, from);
  // Either a rank that lists the group now finds this fact, or this thread finds the rank's entry.
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with Succession::enlist
  return host_->groups.find(group);
}

void Network::take_told(std::uint64_t group, const Fact& fact, int from) {
  GroupEntry* entry = find_or_keep(group, fact, from);
  if (entry == nullptr) return;
  if (auto mirror = GroupMirror::of(*host_, *entry)) mirror->write(fact, {*entry, from});
}

void Network::take(Peer& peer, const CutFact& fact) {
  const auto ranks = static_cast<int>(options_.hosts.size());
  if (fact.other < 0 || fact.other >= ranks) return;
  if (options_.hosts[static_cast<std::size_t>(fact.other)] != own_host()) return;
  if (std::find(peer.ranks.begin(), peer.ranks.end(), fact.own) == peer.ranks.end()) return;
  declare(peer, RankState::kCut, fact.own);
}

void Network::leave() noexcept {
  if (!thread_.joinable() || leaving_.exchange(1) != 0) return;
  notify();
  const auto others_here = [this] {
    for (int place = 0; place < host_->ranks(); ++place) {
      if (host_->liveness.state(place) <= RankState::kAlive) return true;
    }
    return false;
  };
  // The ranks of a host usually leave together. So wait for the others for a moment; the last rank
  // then tells other hosts of all.
  const auto is_last = [&] { return !speaks() || !others_here(); };
  base::poll_until(is_last, Deadline::in(kForMates), kLeavingNap);
  leaving_.store(2, std::memory_order_release);
  const auto has_left = [&] {
    if (!speaks() || left_.load(std::memory_order_acquire) == 2) return true;
    notify();
    return false;
  };
  base::poll_until(has_left, Deadline::in(kForLeaving), kLeavingNap);
}

}  // namespace hocket::control
