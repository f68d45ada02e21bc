// Decides when ranks of other hosts count as lost, and makes lanes again that were cut.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "hocket/error.h"
#include "membership/control/network.h"

namespace hocket::control {

using base::Deadline;
using std::chrono::milliseconds;

namespace {

constexpr auto kRedial = milliseconds(50);
constexpr auto kRedialReach = milliseconds(200);

// The time that the other ranks of a host have to report the fate of a rank whose lane has closed.
constexpr auto kSuccession = milliseconds(30);

// The time for a handshake. After it, another rank of the host is called, because this one may be
// stopped.
constexpr auto kForHandshake = milliseconds(300);

// The time between a broken connection of the carrier and its report as a cut. A rank that ends
// also closes its connections, and news of its end should arrive first.
constexpr auto kForCut = milliseconds(500);

// The longest time for which a living host may leave its processes without a processor.
constexpr auto kStarved = std::chrono::seconds(10);

// Returns whether the host at the other end is gone or unreachable. It is, if it no longer
// acknowledges data: the kernel of a living host does so even if all processors are busy. This
// kernel repeats the data meanwhile, whether or not this process runs. A host that only sends
// nothing may have given its processes no processor.
bool is_silent(const Lane& lane, Duration unheard, Duration limit) noexcept {
  if (unheard <= limit) return false;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(lane.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
  const bool is_deaf = info.tcpi_retransmits != 0 && milliseconds(info.tcpi_last_ack_recv) > limit;
  return is_deaf || unheard > kStarved;
}

}  // namespace

void Network::declare(const Peer& peer, RankState state, int rank) {
  for (const int each : peer.ranks) {
    if (rank >= 0 && each != rank) continue;
    const int place = options_.places[static_cast<std::size_t>(each)];
    if (!may_live(host_->liveness.state(place))) continue;
    host_->remote_hosts.record(
        place, {.world_rank = each, .state = state, .pid = host_->liveness.pid(place)});
  }
}

// Records that a rank of this host has heard the other host. The host is then alive, even if one
// lane has broken.
void Network::note_heard(const Peer& peer) noexcept {
  host_->remote_hosts.note_seen(options_.places[static_cast<std::size_t>(peer.ranks.front())]);
}

bool Network::is_heard_here(const Peer& peer) const noexcept {
  const auto since =
      host_->remote_hosts.since_seen(options_.places[static_cast<std::size_t>(peer.ranks.front())]);
  return since && *since <= options_.silence;
}

void Network::check(Peer& peer) {
  const auto now = Clock::now();
  const auto is_coming = [&](const auto& lane) {
    return lane->is_open() || now - lane->made() < kForHandshake;
  };
  for (const auto& lane : peer.lanes) {
    // A host is not silent in two cases. If none of its ranks has arrived yet, none can send. If it
    // is heard on another lane, only the rank at this lane is stopped, and may continue.
    const bool silent = has_arrived(peer) &&
                        is_silent(*lane, now - lane->last_heard(), options_.silence) &&
                        !(lane->is_open() && is_heard_here(peer));
    if (lane->is_open() && silent) declare(peer, RankState::kSilent, -1);
    if (silent) {
      lane->close();
    } else if (lane->is_open() && now - lane->last_sent() > options_.silence / 6) {
      lane->send(encode(Beat{}));
    }
  }
  drop_closed(peer);
  if (now >= peer.next_dial && std::ranges::none_of(peer.lanes, is_coming) && speaks() &&
      has_living(peer)) {
    call_again(peer);
  }
  judge_loss(peer);
}

bool Network::has_arrived(const Peer& peer) const noexcept {
  return std::any_of(peer.ranks.begin(), peer.ranks.end(), [this](int rank) {
    return host_->liveness.state(options_.places[static_cast<std::size_t>(rank)]) !=
           RankState::kAbsent;
  });
}

void Network::drop_closed(Peer& peer) {
  const bool any_open = peer.has_open_lane();
  for (const auto& lane : peer.lanes) {
    // The end of a lane that was never open says nothing about the host.
    if (any_open || !lane->is_closed() || !lane->was_open()) continue;
    const auto speaker = std::find(peer.ranks.begin(), peer.ranks.end(), lane->peer());
    peer.next_to_call = static_cast<std::size_t>(speaker - peer.ranks.begin());
    peer.next_dial = {};
    if (peer.lost_at == Clock::time_point{}) peer.lost_at = Clock::now();
  }
  if (any_open) {
    peer.lost_at = {};
    peer.refusing.clear();
  }
  std::erase_if(peer.lanes, [](const auto& lane) { return lane->is_closed(); });
}

// Decides about a host whose lanes are all closed. Either the process at the other end has ended,
// or the connection was cut. A rank whose port refuses a new connection has ended. The other ranks
// of the host, if there are any, soon report more.
void Network::judge_loss(Peer& peer) {
  if (peer.lost_at == Clock::time_point{} || !has_living(peer)) return;
  const auto lost_for = Clock::now() - peer.lost_at;
  const bool alone = peer.ranks.size() == 1;
  if (alone || lost_for > kSuccession) {
    for (const int rank : peer.refusing) declare(peer, RankState::kDied, rank);
  }
  if (lost_for > options_.silence && !is_heard_here(peer)) declare(peer, RankState::kSilent, -1);
}

// Makes a missing lane again, if this rank speaks for its host. It tries the ranks of the other
// host one after another. Each attempt is short, because other hosts wait for news meanwhile.
void Network::call_again(Peer& peer) {
  const auto now = Clock::now();
  peer.next_dial = now + kRedial;
  if (peer.lost_at == Clock::time_point{}) peer.lost_at = now;
  for (std::size_t tried = 0; tried < peer.ranks.size(); ++tried) {
    const int rank = peer.ranks[peer.next_to_call++ % peer.ranks.size()];
    if (!may_live(host_->liveness.state(options_.places[static_cast<std::size_t>(rank)]))) continue;
    const auto reach = std::min<Duration>(kRedialReach, options_.silence / 8);
    try {
      peer.lanes.push_back(dial(rank, Deadline::in(reach)));
      return;
    } catch (const SystemError& error) {
      if (error.error_number() == ECONNREFUSED) {
        peer.refusing.insert(rank);
        continue;
      }
    } catch (const Error&) {
      // The rank cannot be reached at the moment.
    }
    return;
  }
}

// Handles ranks that live, but whose connection for messages has broken. Messages in flight are
// lost, and waits for them would never end. Both hosts must learn of it, because one end may not
// notice it.
void Network::take_broken() {
  if (!carrier_.take_broken) return;
  const auto now = Clock::now();
  for (const int rank : carrier_.take_broken()) broken_.try_emplace(rank, now);
  std::erase_if(broken_, [&](const auto& entry) {
    const auto& [rank, since] = entry;
    const auto at = static_cast<std::size_t>(rank);
    const auto peer = peers_.find(options_.hosts[at]);
    if (peer == peers_.end() || host_->liveness.state(options_.places[at]) > RankState::kAlive)
      return true;
    if (now - since < kForCut) return false;
    host_->remote_hosts.record_cut(options_.places[at], options_.identity.rank);
    return true;
  });
}

}  // namespace hocket::control
