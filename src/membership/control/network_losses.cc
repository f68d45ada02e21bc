// When ranks of other hosts count as lost, and how a lane that was cut comes back.
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

// Time that the other ranks of its host have to report the fate of a rank whose lane has closed.
constexpr auto kSuccession = milliseconds(30);

// Time for a handshake before another rank of the host is called: this one may be stopped.
constexpr auto kForHandshake = milliseconds(300);

// A rank that ends closes its connections, too. This is the time for its end to be reported.
constexpr auto kForCut = milliseconds(500);

// Time for which a living host may leave its processes without a processor.
constexpr auto kStarved = std::chrono::seconds(10);

// True if the host is gone or unreachable. Such a host does not acknowledge data, which a living
// one's kernel does even with busy processors. This kernel repeats the data meanwhile, whether or
// not this process has a turn. A host that just says nothing may have had no turn.
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
    if (!may_live(host_->state(place))) continue;
    host_->record_remote(place,
                         {.state = state,
                          .pid = host_->pid(place),
                          .world_rank = each,
                          .end = std::nullopt,
                          .reason = std::nullopt});
  }
}

// If any rank of this host hears the other host, that host is alive, even if one lane has broken.
void Network::note_heard(const Peer& peer) noexcept {
  host_->note_seen(options_.places[static_cast<std::size_t>(peer.ranks.front())]);
}

bool Network::is_heard_here(const Peer& peer) const noexcept {
  const auto since =
      host_->since_seen(options_.places[static_cast<std::size_t>(peer.ranks.front())]);
  return since && *since <= options_.silence;
}

void Network::check(Peer& peer) {
  const auto now = Clock::now();
  const auto is_coming = [&](const auto& lane) {
    return lane->is_open() || now - lane->made() < kForHandshake;
  };
  for (const auto& lane : peer.lanes) {
    // A host on which no rank has arrived yet has no rank that could say anything. A host that is
    // heard on another lane has a stopped rank, which may go on.
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
    return host_->state(options_.places[static_cast<std::size_t>(rank)]) != RankState::kAbsent;
  });
}

void Network::drop_closed(Peer& peer) {
  const bool any_open = std::any_of(
      peer.lanes.begin(), peer.lanes.end(), [](const auto& lane) { return lane->is_open(); });
  for (const auto& lane : peer.lanes) {
    // A lane that was never open gives no new information.
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

// A connection ends with its process, or was cut. Its speaker is called again. If its listener is
// gone, the process has ended. The other ranks of its host, if any, soon report more.
void Network::judge_loss(Peer& peer) {
  if (peer.lost_at == Clock::time_point{} || !has_living(peer)) return;
  const auto lost_for = Clock::now() - peer.lost_at;
  const bool alone = peer.ranks.size() == 1;
  if (alone || lost_for > kSuccession) {
    for (const int rank : peer.refusing) declare(peer, RankState::kDied, rank);
  }
  if (lost_for > options_.silence && !is_heard_here(peer)) declare(peer, RankState::kSilent, -1);
}

// A rank that now speaks for this host makes the missing lanes. It calls one rank at a time, and
// each for a short time, as the other hosts wait for news meanwhile.
void Network::call_again(Peer& peer) {
  const auto now = Clock::now();
  peer.next_dial = now + kRedial;
  if (peer.lost_at == Clock::time_point{}) peer.lost_at = now;
  for (std::size_t tried = 0; tried < peer.ranks.size(); ++tried) {
    const int rank = peer.ranks[peer.next_to_call++ % peer.ranks.size()];
    if (!may_live(host_->state(options_.places[static_cast<std::size_t>(rank)]))) continue;
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
      // No way there now.
    }
    return;
  }
}

// If the carrier has lost a rank that lives on, messages in flight are lost, and waits for them
// would never end. Both hosts must know, as one end may not notice.
void Network::take_broken() {
  if (!carrier_.take_broken) return;
  const auto now = Clock::now();
  for (const int rank : carrier_.take_broken()) broken_.try_emplace(rank, now);
  std::erase_if(broken_, [&](const auto& entry) {
    const auto& [rank, since] = entry;
    const auto at = static_cast<std::size_t>(rank);
    const auto peer = peers_.find(options_.hosts[at]);
    if (peer == peers_.end() || host_->state(options_.places[at]) > RankState::kAlive) return true;
    if (now - since < kForCut) return false;
    host_->record_cut(options_.places[at], options_.identity.rank);
    return true;
  });
}

}  // namespace hocket::control
