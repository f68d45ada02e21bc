#include "calls/joining/host_connections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "foundation/base/log.h"
#include "foundation/os/sockets/addresses.h"
#include "foundation/os/sockets/ports.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/object.h"
#include "membership/rendezvous/address.h"

namespace hocket::joining {
namespace {

using base::Deadline;

// The card for connections between hosts, exchanged through the store.
struct ConnectionCard {
  std::string lane;     // "host:port" on which it listens for other hosts
  Bytes carrier;        // the message carrier's address
  Bytes key;            // the key on rank 0's card becomes the lanes' key
  std::string problem;  // the reason if it has no address; else empty
};

Bytes to_bytes(const ConnectionCard& card) {
  return encode(Object::list({card.lane,
                              Object::bytes(std::span<const std::byte>(card.carrier)),
                              Object::bytes(std::span<const std::byte>(card.key)),
                              card.problem}));
}

ConnectionCard to_card(const Bytes& bytes) {
  const Object object = decode(bytes);
  const auto to_vector = [](const auto& from) { return Bytes(from.begin(), from.end()); };
  return {.lane = object[0].as_string(),
          .carrier = to_vector(object[1].as_bytes()),
          .key = to_vector(object[2].as_bytes()),
          .problem = object[3].as_string()};
}

// Returns the interface of the route to the store, for the carrier of messages. Its name is empty
// if the carrier must choose by itself: on loopback, where all ranks are on one machine, or without
// an IPv4 address, which UCX's TCP needs.
os::Interface interface_toward(const os::HostPort& store) {
  const std::string address = os::address_toward(store);
  const auto found = os::find_interface(address);
  if (!found || os::is_loopback(address)) return {.name = "", .address = address};
  const auto by_name = os::find_interface(found->name);
  const bool has_v4 = by_name && by_name->address.find(':') == std::string::npos;
  return {.name = has_v4 ? found->name : "", .address = address};
}

// Returns the interface by which other hosts are reached.
os::Interface interface_for(const LaunchInfo& launch, const base::Config& config) {
  if (!config.interface.empty()) {
    const auto found = os::find_interface(config.interface);
    if (found) return *found;
    throw InvalidArgument(fmt::format(
        "HOCKET_INTERFACE={} is neither an interface of this host that is up nor an address of one "
        "(`hocket doctor` lists them)",
        config.interface));
  }
  const auto store = rendezvous::parse_address(launch.store_address, "the store's address");
  const auto* tcp = std::get_if<os::HostPort>(&store);
  // Ranks that meet by AF_UNIX are on one machine, even if their host identities differ.
  if (tcp == nullptr) return {.name = "", .address = "127.0.0.1"};
  return interface_toward(*tcp);
}

// The first letter of a rank's report about an unreachable host: the connection was refused, or it
// timed out.
constexpr char kRefused = 'r', kWaited = 'w';

// With more hosts than this, only the first rank of each host tests connections.
constexpr std::size_t kMostHostsOfAll = 16;

// Exchanges texts through the store. Returns the texts of all ranks, in order.
std::vector<Bytes> exchange(
    Store& store, const char* name, const LaunchInfo& launch, const Bytes& own, Deadline deadline) {
  return store.exchange(name, launch.rank, launch.size, own, deadline.left());
}

// Returns the first rank of each other host.
std::vector<int> firsts_of_others(const std::vector<int>& hosts, int own_host) {
  std::vector<int> firsts;
  std::set<int> known{own_host};
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (known.insert(hosts[i]).second) firsts.push_back(static_cast<int>(i));
  }
  return firsts;
}

// Finds a rank that messages do not reach, and describes it. The text is empty if there is none.
control::Unreached find_unreachable(const world::WorldParts& parts,
                                    const std::vector<ConnectionCard>& cards,
                                    const std::vector<std::string>& host_names) {
  const auto own = static_cast<std::size_t>(parts.launch.rank);
  auto ranks = ranks_to_try(parts.hosts, parts.launch.rank);
  const auto firsts = firsts_of_others(parts.hosts, parts.hosts[own]);
  ranks.insert(ranks.end(), firsts.begin(), firsts.end());
  for (const int rank : ranks) {
    const auto way = parts.engines.far()->carrier()->why_unreachable(rank);
    if (way.text.empty()) continue;
    const auto other = static_cast<std::size_t>(rank);
    return {.was_refused = !way.is_awaited,
            .text = fmt::format("rank {} on {} ({}) {} rank {} on {} ({}) {}",
                                own,
                                host_names[own],
                                cards[own].lane,
                                way.is_awaited ? "hears nothing from" : "cannot reach",
                                rank,
                                host_names[other],
                                cards[other].lane,
                                way.text)};
  }
  return {};
}

}  // namespace

std::vector<int> ranks_to_try(const std::vector<int>& hosts, int rank) {
  std::map<int, std::vector<int>> ranks;  // by host
  for (std::size_t i = 0; i < hosts.size(); ++i) ranks[hosts[i]].push_back(static_cast<int>(i));
  const int own_host = hosts[static_cast<std::size_t>(rank)];
  const std::vector<int>& mates = ranks[own_host];
  const auto place = static_cast<std::size_t>(std::ranges::find(mates, rank) - mates.begin());
  std::vector<int> tried;
  if (ranks.size() > kMostHostsOfAll && place != 0) return tried;
  for (const auto& [host, others] : ranks) {
    if (host == own_host) continue;
    // Pairs the ranks of two hosts. If one host has more ranks, several of them get the same
    // partner.
    for (std::size_t i = place % others.size(); i < others.size(); i += mates.size()) {
      tried.push_back(others[i]);
      if (ranks.size() > kMostHostsOfAll) break;
    }
  }
  return tried;
}

void connect_hosts(world::WorldParts& parts,
                   Store& store,
                   const ConnectOptions& how,
                   Deadline deadline) {
  const auto& [config, host_names] = how;
  engine::Provider& far = *parts.engines.far();
  const LaunchInfo& launch = parts.launch;
  ConnectionCard own;
  os::Fd listener;
  try {
    const os::Interface interface = interface_for(launch, config);
    listener = os::listen_tcp(interface.address, config.ports);
    own.lane = os::to_string(os::HostPort{interface.address, os::local_port(listener.get())});
    own.carrier = far.join({.rank = launch.rank,
                            .size = launch.size,
                            .launcher = launch.launcher,
                            .interface = interface.name,
                            .ports = config.ports,
                            .is_interface_chosen = !config.interface.empty()});
    const Key key = Key::generate();
    own.key.assign(key.bytes().begin(), key.bytes().end());
  } catch (const Error& error) {
    own.problem = error.what();
  }
  std::vector<ConnectionCard> cards;
  for (const Bytes& bytes : exchange(store, "hocket/network", launch, to_bytes(own), deadline)) {
    cards.push_back(to_card(bytes));
  }
  control::NetworkOptions options;
  options.identity.rank = launch.rank;
  options.identity.size = launch.size;
  options.identity.epoch = launch.epoch;
  options.identity.job = launch.job;
  options.trust_network = launch.trust_network;
  options.hosts = parts.hosts;
  options.places = parts.host_ranks;
  options.host_names = host_names;
  options.silence = config.silence;
  std::vector<Bytes> carriers;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    if (!cards[i].problem.empty()) {
      throw RendezvousError(fmt::format("rank {} on {}: {}", i, host_names[i], cards[i].problem));
    }
    options.addresses.push_back(cards[i].lane);
    carriers.push_back(std::move(cards[i].carrier));
  }
  if (cards[0].key.size() != Key::kBytes) {
    throw RendezvousError("rank 0's card at the store is damaged");
  }
  options.identity.key = Key(Key::View(cards[0].key));
  for (ConnectionCard& card : cards) ::explicit_bzero(card.key.data(), card.key.size());
  ::explicit_bzero(own.key.data(), own.key.size());
  base::log(base::LogLevel::kInfo, fmt::format("other hosts reach this rank at {}", own.lane));
  far.meet(carriers);
  parts.network = std::make_shared<control::Network>(std::move(options), std::move(listener));
  engine::Carrier& carrier = *far.carrier();
  carrier.try_ways(launch.rank, ranks_to_try(parts.hosts, launch.rank));
  control::Unreached wrong =
      parts.network->establish(deadline, [&] { return carrier.are_ways_tried(); });
  if (wrong.text.empty()) wrong = find_unreachable(parts, cards, host_names);
  const Bytes own_word = hocket::to_bytes((wrong.was_refused ? kRefused : kWaited) + wrong.text);
  std::string told;
  for (const Bytes& word : exchange(store, "hocket/lanes", launch, own_word, deadline)) {
    const std::string said = to_string(word);
    if (said.size() <= 1) continue;
    if (told.empty() || said.starts_with(kRefused)) told = said.substr(1);
  }
  if (told.empty()) return;
  carrier.retire();  // the carrier must not close connections that are still being made
  throw RendezvousError(told);
}

}  // namespace hocket::joining
