// Makes the lanes between hosts: connects to other hosts, and accepts their connections. An
// accepted connection is a stranger until its peer has authenticated itself.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "foundation/base/interrupt.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/error.h"
#include "membership/control/network.h"

namespace hocket::control {

using base::Deadline;
using rendezvous::Side;
using std::chrono::milliseconds;

namespace {

constexpr auto kReach = std::chrono::seconds(10);  // in which a host must answer at the start
constexpr const char* kMendWay =
    "see that the hosts have a route to each other and no firewall between them (HOCKET_INTERFACE "
    "chooses the way, HOCKET_PORTS the ports)";
constexpr auto kDialPause = milliseconds(50);
constexpr auto kNap = milliseconds(20);
constexpr auto kNapBesideCarrier = milliseconds(1);
constexpr auto kStrangerTime = std::chrono::seconds(5);
constexpr std::size_t kMostStrangers = 256;
constexpr int kAcceptedAtOnce = 64;  // then open lanes are served first
constexpr auto kAcceptPause = milliseconds(50);

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
  return make_lane(os::connect_tcp(*address, deadline));
}

std::unique_ptr<Lane> Network::make_lane(os::Fd socket) {
  return std::make_unique<Lane>(
      make_channel(std::move(socket), Side::kClient), Side::kClient, options_.identity);
}

void Network::accept_strangers() {
  try {
    for (int i = 0; i < kAcceptedAtOnce; ++i) {
      os::Fd socket = os::accept_pending(listener_.get());
      if (!socket) return;
      // Drop the oldest stranger, which has had the most time to authenticate itself.
      if (strangers_.size() >= kMostStrangers) strangers_.erase(strangers_.begin());
      strangers_.push_back(std::make_unique<Lane>(
          make_channel(std::move(socket), Side::kServer), Side::kServer, options_.identity));
    }
  } catch (const Error&) {
    // This process has no free descriptor. Drop one stranger, whose other end will connect again.
    if (!strangers_.empty()) strangers_.erase(strangers_.begin());
    accepts_from_ = Clock::now() + kAcceptPause;
  }
}

// Makes a stranger that has authenticated itself a lane of its host.
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

// Waits until data can be sent or received, or `notify` is called; for at most `longest`.
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
  for (const os::Fd& call : calls_) polls.push_back({call.get(), POLLOUT, 0});
  const auto timeout = std::chrono::ceil<milliseconds>(longest).count();
  ::poll(polls.data(), polls.size(), static_cast<int>(timeout));
  if (polls[0].revents != 0) wakeup_.take();
  if (polls[2].revents != 0) {
    unwatch();
    if (host_) host_->doorbells.wake_self();
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

// Makes and tests the first connections of one rank. One thread uses it. The two hosts of a pair
// both connect to each other, because a firewall may let only one direction through. The connection
// that the host with the greater number has made becomes the lane. The other one is closed again.
class Network::Establishing {
 public:
  explicit Establishing(Network& network) : network_(network) {
    if (!network_.is_first()) return;
    for (auto& [host, peer] : network_.peers_) {
      ways_.push_back({.host = host, .peer = &peer, .makes_lane = host < network_.own_host()});
    }
    for (Way& way : ways_) call(way);
  }
  ~Establishing() { network_.calls_.clear(); }
  Establishing(const Establishing&) = delete;
  Establishing& operator=(const Establishing&) = delete;

  bool is_settled() const {
    return std::ranges::all_of(ways_, [](const Way& way) { return way.is_settled(); });
  }

  void move() {
    const bool may_call = Clock::now() >= next_call_;
    if (may_call) next_call_ = Clock::now() + kDialPause;
    for (Way& way : ways_) {
      std::erase_if(way.peer->lanes, [](const auto& lane) { return lane->is_closed(); });
      if (way.given_up) continue;
      finish(way);
      // Connect again if the lane was cut before it was open.
      const bool is_lost = way.makes_lane && way.peer->lanes.empty() && way.call < 0;
      if (is_lost && may_call) call(way);
    }
  }

  bool has_failed() const noexcept { return !wrong_.text.empty(); }
  // Returns the error of a direction that was refused. If none was, returns that of a direction
  // that is not open yet.
  Unreached wrong() const {
    if (has_failed()) return wrong_;
    const auto absent =
        std::ranges::find_if(ways_, [](const Way& way) { return !way.is_settled(); });
    if (absent == ways_.end()) return {};
    const std::string limit = base::in_seconds(kReach);
    if (absent->reached) {
      return {.was_refused = false,
              .text = fmt::format("{} reaches {}, and has heard nothing from there within {}; {}",
                                  network_.name_of(network_.options_.identity.rank),
                                  network_.name_of(absent->rank()),
                                  limit,
                                  kMendWay)};
    }
    const char* other_way = absent->peer->has_open_lane() ? ", and reaches this one" : "";
    return {
        .was_refused = true,
        .text = network_.unreached(
            absent->rank(), fmt::format("it took no connection within {}{}", limit, other_way))};
  }

 private:
  // The state of both directions between this host and another.
  struct Way {
    int host = 0;
    Peer* peer = nullptr;
    bool makes_lane = false;  // true: this host makes the lane; false: the other host does
    bool reached = false;     // the other host has accepted a connection
    bool given_up = false;
    int call = -1;  // the descriptor of an unfinished connection; -1: none

    int rank() const { return peer->ranks.front(); }
    bool is_settled() const { return given_up || (reached && peer->has_open_lane()); }
  };

  void call(Way& way) {
    const auto address =
        os::parse_host_port(network_.options_.addresses[static_cast<std::size_t>(way.rank())]);
    try {
      if (!address) throw RendezvousError("its address is damaged");
      network_.calls_.push_back(os::begin_connect(*address));
      way.call = network_.calls_.back().get();
    } catch (const Error& error) {
      give_up(way, error.what());
    }
  }

  void finish(Way& way) {
    if (way.call < 0) return;
    pollfd waited{.fd = way.call, .events = POLLOUT, .revents = 0};
    if (::poll(&waited, 1, 0) <= 0) return;
    const auto found = std::ranges::find(network_.calls_, way.call, &os::Fd::get);
    os::Fd socket = std::move(*found);
    network_.calls_.erase(found);
    way.call = -1;
    if (const int error = os::connect_error(socket.get()); error != 0) {
      return give_up(way, SystemError("no connection is made", error).what());
    }
    way.reached = true;
    if (way.makes_lane) way.peer->lanes.push_back(network_.make_lane(std::move(socket)));
  }

  void give_up(Way& way, const char* why) {
    way.given_up = true;
    wrong_ = {.was_refused = true, .text = network_.unreached(way.rank(), why)};
  }

  Network& network_;
  std::vector<Way> ways_;
  Clock::time_point next_call_ = Clock::now() + kDialPause;
  Unreached wrong_;
};

std::string Network::unreached(int rank, std::string_view why) const {
  return fmt::format(
      "{} cannot reach {}: {}; {}", name_of(options_.identity.rank), name_of(rank), why, kMendWay);
}

Unreached Network::establish(Deadline deadline, const std::function<bool()>& carrier) {
  deadline = std::min(deadline, Deadline::in(kReach));
  Establishing establishing(*this);
  bool is_carried = false;
  while (!deadline.has_passed()) {
    is_carried = is_carried || carrier();
    if (establishing.is_settled() && (is_carried || establishing.has_failed())) break;
    wait(is_carried ? kNap : kNapBesideCarrier);
    move_lanes();
    establishing.move();
    base::throw_if_interrupted("the wait for the other hosts");
  }
  return establishing.wrong();
}

}  // namespace hocket::control
