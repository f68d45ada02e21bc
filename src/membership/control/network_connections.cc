// Makes the lanes between hosts: by calling another host, or from strangers that authenticate
// themselves.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "foundation/base/interrupt.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/error.h"
#include "membership/control/network.h"

namespace hocket::control {

using base::Deadline;
using rendezvous::Side;
using std::chrono::milliseconds;

namespace {

constexpr auto kReach = std::chrono::seconds(10);  // for a host to answer at the start
constexpr const char* kMendWay =
    "see that the hosts have a route to each other and no firewall between them (HOCKET_INTERFACE "
    "chooses the way)";
constexpr auto kStrangerTime = std::chrono::seconds(5);
constexpr std::size_t kMostStrangers = 256;
constexpr int kAcceptedAtOnce = 64;  // then those who are there already have their turn
constexpr auto kAcceptPause = milliseconds(50);
constexpr auto kDialPause = milliseconds(50);

void set_user_timeout(int socket, Duration silence) noexcept {
  const auto limit =
      static_cast<unsigned>(std::chrono::duration_cast<milliseconds>(2 * silence).count());
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
}

}  // namespace

std::unique_ptr<rendezvous::Channel> Network::make_channel(os::Fd socket, Side side) {
  os::set_no_delay(socket.get());
  set_user_timeout(socket.get(), options_.silence);
  if (options_.trust_network || os::is_loopback_connection(socket.get())) {
    return rendezvous::make_plain_channel(std::move(socket), side);
  }
  return rendezvous::make_tls_channel(std::move(socket),
                                      side == Side::kClient ? client_tls_ : server_tls_);
}

std::unique_ptr<Lane> Network::dial(int rank, Deadline deadline) {
  const auto address = os::parse_host_port(options_.addresses[static_cast<std::size_t>(rank)]);
  if (!address) throw RendezvousError("its address is damaged");
  return std::make_unique<Lane>(make_channel(os::connect_tcp(*address, deadline), Side::kClient),
                                Side::kClient,
                                options_.identity);
}

void Network::accept_strangers() {
  try {
    for (int i = 0; i < kAcceptedAtOnce; ++i) {
      os::Fd socket = os::accept_pending(listener_.get());
      if (!socket) return;
      // The oldest have had the most time to prove themselves.
      if (strangers_.size() >= kMostStrangers) strangers_.erase(strangers_.begin());
      strangers_.push_back(std::make_unique<Lane>(
          make_channel(std::move(socket), Side::kServer), Side::kServer, options_.identity));
    }
  } catch (const Error&) {
    // Without a descriptor for it: the other end tries again, and so does this one, later.
    if (!strangers_.empty()) strangers_.erase(strangers_.begin());
    accepts_from_ = Clock::now() + kAcceptPause;
  }
}

// Strangers that have authenticated themselves become lanes of their hosts.
void Network::adopt_strangers() {
  for (auto& stranger : strangers_) {
    if (Lane::Clock::now() - stranger->made() > kStrangerTime) stranger->close();
    if (!stranger->is_open()) continue;
    const auto peer = peers_.find(options_.hosts[static_cast<std::size_t>(stranger->peer())]);
    if (peer == peers_.end()) {
      stranger->close();
      continue;
    }
    peer->second.lost_at = {};
    if (host_) {
      note_heard(peer->second);
      tell_all(*stranger);
    }
    peer->second.lanes.push_back(std::move(stranger));
  }
  std::erase_if(strangers_, [](const auto& lane) { return !lane || lane->is_closed(); });
}

// Until something can be moved.
void Network::wait(Clock::duration longest) {
  const bool accepts = Clock::now() >= accepts_from_;
  if (!accepts) longest = std::min<Clock::duration>(longest, kAcceptPause);
  std::vector<pollfd> polls{{wakeup_.fd(), POLLIN, 0},
                            {accepts ? listener_.get() : -1, POLLIN, 0},
                            {events_.get(), POLLIN, 0}};
  const auto add = [&polls](const Lane& lane) {
    polls.push_back(
        {lane.fd(), static_cast<short>(lane.wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0});
  };
  for (const auto& [host, peer] : peers_) {
    for (const auto& lane : peer.lanes) add(*lane);
  }
  for (const auto& lane : strangers_) add(*lane);
  const auto timeout = std::chrono::ceil<milliseconds>(longest).count();
  ::poll(polls.data(), polls.size(), static_cast<int>(timeout));
  if (polls[0].revents != 0) wakeup_.take();
  if (polls[2].revents != 0) {
    unwatch();
    if (host_) host_->wake_self();
  }
  if (polls[1].revents != 0) accept_strangers();
}

void Network::move_lanes() {
  for (auto& [host, peer] : peers_) {
    for (std::size_t i = 0; i < peer.lanes.size(); ++i) {
      Lane& lane = *peer.lanes[i];
      const bool was_open = lane.is_open();
      const auto last_heard = lane.last_heard();
      lane.move(
          [this, &owner = peer](std::span<const std::byte> payload) { take(owner, payload); });
      if (lane.is_open() && !was_open && host_) tell_all(lane);
      if (lane.is_open() && host_ && (!was_open || lane.last_heard() != last_heard)) {
        note_heard(peer);
      }
    }
  }
  for (const auto& lane : strangers_) {
    lane->move([](std::span<const std::byte>) {});
  }
  adopt_strangers();
}

Unreached Network::establish(Deadline deadline) {
  if (!is_first()) return {};
  deadline = std::min(deadline, Deadline::in(kReach));
  Unreached wrong;
  std::set<int> given_up;
  const auto call = [&](int host, Peer& peer) {
    try {
      peer.lanes.push_back(dial(peer.ranks.front(), deadline));
    } catch (const Error& error) {
      wrong = {.was_refused = true,
               .text = fmt::format("{} cannot reach {}: {}; {}",
                                   name_of(options_.identity.rank),
                                   name_of(peer.ranks.front()),
                                   error.what(),
                                   kMendWay)};
      given_up.insert(host);
    }
  };
  // The host with the greater number calls.
  for (auto& [host, peer] : peers_) {
    if (host < own_host()) call(host, peer);
  }
  const auto is_settled = [&](const auto& entry) {
    return given_up.contains(entry.first) ||
           std::any_of(entry.second.lanes.begin(), entry.second.lanes.end(), [](const auto& lane) {
             return lane->is_open();
           });
  };
  auto next_dial = Clock::now();
  while (!std::all_of(peers_.begin(), peers_.end(), is_settled) && !deadline.has_passed()) {
    wait(milliseconds(20));
    move_lanes();
    // A lane that was cut before it was open is made once more.
    const bool may_dial = Clock::now() >= next_dial;
    if (may_dial) next_dial = Clock::now() + kDialPause;
    for (auto& [host, peer] : peers_) {
      std::erase_if(peer.lanes, [](const auto& lane) { return lane->is_closed(); });
      if (!may_dial || host > own_host() || !peer.lanes.empty() || given_up.contains(host))
        continue;
      call(host, peer);
    }
    base::throw_if_interrupted("the wait for the other hosts");
  }
  for (const auto& entry : peers_) {
    if (!wrong.text.empty() || is_settled(entry)) continue;
    wrong.text = fmt::format("{} and {} could not connect within {}; {}",
                             name_of(options_.identity.rank),
                             name_of(entry.second.ranks.front()),
                             base::in_seconds(kReach),
                             kMendWay);
  }
  return wrong;
}

}  // namespace hocket::control
