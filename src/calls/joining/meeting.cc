#include "calls/joining/meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <set>

#include "calls/joining/card.h"
#include "calls/joining/host_connections.h"
#include "calls/joining/segment_handover.h"
#include "foundation/base/log.h"
#include "foundation/os/futex.h"
#include "foundation/os/machine/allotment.h"
#include "foundation/os/machine/host_identity.h"
#include "foundation/os/sockets/socket.h"
#include "foundation/os/sockets/unix_socket.h"
#include "membership/rendezvous/join.h"
#include "membership/rendezvous/store/request_store.h"
#include "membership/rendezvous/wire/establish.h"

namespace hocket::joining {
namespace {

using base::Deadline;

// Throws unless all ranks chose the same engines and algorithms. Otherwise calls would hang.
void require_agreement(const std::vector<Card>& cards) {
  for (std::size_t i = 0; i < cards.size(); ++i) {
    if (cards[i].problem.empty()) continue;
    throw RendezvousError(fmt::format("rank {} cannot join: {}", i, cards[i].problem));
  }
  const auto require = [&](std::string Card::* setting, const char* what, const char* mend) {
    for (std::size_t i = 1; i < cards.size(); ++i) {
      if (cards[i].*setting == cards[0].*setting) continue;
      throw RendezvousError(fmt::format("rank 0 is to use {} \"{}\" and rank {} \"{}\"; {}",
                                        what,
                                        cards[0].*setting,
                                        i,
                                        cards[i].*setting,
                                        mend));
    }
  };
  require(&Card::algorithms, "the algorithms", "give all ranks the same HOCKET_ALGORITHM");
  require(&Card::engines, "the engines", "give all ranks the same HOCKET_ENGINES, or `engines`");
}

// The host of each rank, and the rank's number there.
struct Placement {
  std::vector<int> hosts;
  std::vector<int> host_ranks;
  int leader = 0;      // the first rank of this rank's host
  int neighbours = 1;  // ranks on this host
};

Placement place_ranks(const std::vector<Card>& cards, int rank) {
  Placement placement;
  std::vector<std::string> known;
  std::vector<int> count;
  std::vector<int> first;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    auto at = static_cast<std::size_t>(std::find(known.begin(), known.end(), cards[i].host) -
                                       known.begin());
    if (at == known.size()) {
      known.push_back(cards[i].host);
      count.push_back(0);
      first.push_back(static_cast<int>(i));
    }
    placement.hosts.push_back(static_cast<int>(at));
    placement.host_ranks.push_back(count[at]++);
  }
  const auto own = static_cast<std::size_t>(placement.hosts[static_cast<std::size_t>(rank)]);
  placement.leader = first[own];
  placement.neighbours = count[own];
  return placement;
}

// Returns the other ranks of this rank's host.
std::set<int> others_here(const Placement& placement, int rank) {
  std::set<int> others;
  for (std::size_t i = 0; i < placement.hosts.size(); ++i) {
    const bool here = placement.hosts[i] == placement.hosts[static_cast<std::size_t>(rank)];
    if (here && static_cast<int>(i) != rank) others.insert(static_cast<int>(i));
  }
  return others;
}

// Returns the place of each rank on this host; see control::HostView.
std::vector<int> places(const Placement& placement, int rank) {
  std::vector<int> places = placement.host_ranks;
  int next = placement.neighbours;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (placement.hosts[i] != placement.hosts[static_cast<std::size_t>(rank)]) places[i] = next++;
  }
  return places;
}

// Returns how this rank may wait. Ranks of one machine share its processors, even if they count as
// several hosts.
os::Pace own_pace(const std::vector<Card>& cards, int rank) {
  const Card& own = cards[static_cast<std::size_t>(rank)];
  std::vector<os::Allotment> machine;
  std::size_t at = 0;
  for (const Card& card : cards) {
    if (card.machine != own.machine) continue;
    if (&card == &own) at = machine.size();
    auto allotment = os::to_allotment(card.allotment);
    if (!allotment) throw RendezvousError("a rank's card at the store is damaged");
    machine.push_back(std::move(*allotment));
  }
  const os::Pace pace = os::paces_of(machine)[at];
  base::log(base::LogLevel::kInfo,
            fmt::format("a wait of this rank {}; it may use processors {} (memory node {}), and {} "
                        "ranks are on this machine",
                        os::to_text(pace),
                        machine[at].processors.text(),
                        machine[at].node < 0 ? "any" : std::to_string(machine[at].node),
                        machine.size()));
  return pace;
}

// Tests system calls that have no substitute, which a container's profile may refuse. Throws
// SystemError.
void require_of_kernel() {
  os::Segment::create(os::page_bytes());
  os::require_robust_words();
  const os::ForkGuard guard;
}

// Exchanges like Store::exchange. After kSilentWait, rank 0 logs which ranks are missing. If rank 0
// itself is missing, the other ranks log this.
std::vector<Bytes> exchange(Store& store,
                            const Bytes& own,
                            const LaunchInfo& launch,
                            Deadline deadline) {
  const auto once = [&](Duration limit) {
    return store.exchange("hocket/cards", launch.rank, launch.size, own, limit);
  };
  if (deadline.left() <= rendezvous::kSilentWait) return once(deadline.left());
  try {
    return once(rendezvous::kSilentWait);
  } catch (const rendezvous::RanksMissing& missing) {
    const std::string& who = missing.who();
    const bool misses_first = who == "rank 0" || who.starts_with("ranks 0");
    if (launch.rank == 0 || misses_first) {
      base::log(
          base::LogLevel::kWarning,
          fmt::format(
              "still waiting for {} of {} to come to {}", who, launch.size, launch.store_address));
    }
    return once(deadline.left());
  }
}

// Exchanges cards through the store. Returns the cards of all ranks.
std::vector<Card> exchange_cards(
    Store& store, const Card& own, const LaunchInfo& launch, Duration timeout, Deadline deadline) {
  try {
    return to_cards(exchange(store, to_bytes(own), launch, deadline));
  } catch (const rendezvous::RanksMissing& missing) {
    throw RendezvousError(fmt::format(
        "{} of {} had not come to {} within {}{}; see whether {} started, with the same address, "
        "size and key, and what {} output says, or give init a longer timeout",
        missing.who(),
        launch.size,
        launch.store_address,
        base::in_seconds(timeout),
        missing.others().empty() ? "" : fmt::format(" ({})", missing.others()),
        missing.one() ? "it was" : "they were",
        missing.one() ? "its" : "their"));
  }
}

}  // namespace

Duration join_timeout(const InitOptions& options) {
  return options.timeout.value_or(std::chrono::seconds(300));
}

std::string audit_folder(const base::Config& config) {
  if (!config.audit_dir.empty()) return config.audit_dir;
  return config.trace_dir.empty() ? "hocket-audit" : config.trace_dir;
}

void heed_settings(world::WorldParts& parts,
                   const InitOptions& options,
                   const base::Config& config,
                   const engine::ProviderList& providers) {
  parts.engines = world::JobEngines(providers, options, config, engine::Ranks::kProcesses);
  parts.algorithms = algorithm::Choices::parse(config.algorithm);
  parts.single_copy = config.single_copy;
  if (!config.trace_dir.empty()) {
    parts.trace = observe::TraceFile::make(config.trace_dir,
                                           {.rank = parts.launch.rank, .size = parts.launch.size});
  }
  parts.audit_folder = audit_folder(config);
  if (!config.audit_dir.empty()) {
    parts.audit = observe::AuditFile::make(config.audit_dir,
                                           {.rank = parts.launch.rank, .size = parts.launch.size});
  }
}

// If the engine between hosts is the only carrier, even for ranks of one host, each rank counts as
// a separate host.
void tell_apart(std::vector<Card>& cards, const world::JobEngines& engines) {
  if (!engines.far() || !engines.is_one_carrier()) return;
  const auto is_there = [&](const Card& card) { return card.host == cards.front().host; };
  if (!std::ranges::all_of(cards, is_there)) return;
  for (std::size_t i = 0; i < cards.size(); ++i) cards[i].host += fmt::format("/{}", i);
}

std::size_t stripe_with_world(std::size_t wanted,
                              const world::JobEngines& engines,
                              const world::GroupShape& world) {
  constexpr std::size_t kUnit = std::size_t{1} << 20;
  const std::size_t least = world::group_bytes(engines, world) / kUnit * kUnit + 2 * kUnit;
  const std::size_t most = call::kMostBytes / static_cast<std::size_t>(world.local);
  return std::max(least, std::min(wanted, most) / kUnit * kUnit);
}

std::size_t stripe_bytes(const InitOptions& options,
                         const base::Config& config,
                         const world::JobEngines& engines,
                         const world::GroupShape& world) {
  constexpr std::size_t kGiB = std::size_t{1} << 30;
  const auto ranks = static_cast<std::size_t>(world.local);
  std::size_t wanted = options.segment_bytes.value_or(config.segment_bytes);
  if (wanted == 0) {
    // No size was requested, so the default size may be reduced to a size that fits.
    wanted = (os::memory_bytes() + kGiB - 1) / kGiB * kGiB;
    wanted =
        os::segment_bytes_with_room(std::min(wanted, call::kMostBytes / ranks) * ranks) / ranks;
  }
  wanted = std::min(wanted, call::kMostBytes / ranks);
  return stripe_with_world(os::allowed_segment_bytes(wanted * ranks) / ranks, engines, world);
}

std::shared_ptr<os::Segment> make_segment(const control::HostShape& shape,
                                          const base::Config& config,
                                          bool threads) {
  const std::size_t bytes = control::HostControl::segment_bytes(shape);
  const auto made = [&] {
    if (!threads) return os::Segment::create(bytes);
    return config.is_shown ? os::Segment::create_for_threads(bytes)
                           : os::Segment::create_private(bytes);
  };
  auto segment = std::make_shared<os::Segment>(made());
  control::HostControl::format(*segment, shape);
  return segment;
}

world::WorldParts meet(const InitOptions& options,
                       const base::Config& config,
                       const engine::ProviderList& providers,
                       const LaunchInfo& launch,
                       Deadline deadline,
                       Attendance& attendance,
                       std::optional<StoreServer> server) {
  world::WorldParts parts{.launch = launch};
  rendezvous::Joined joined = rendezvous::join(launch, deadline.left(), std::move(server));
  const std::shared_ptr<Store> store = std::move(joined.store);
  parts.store_clients = std::move(joined.clients);
  attendance = Attendance(std::move(joined.member), launch, static_cast<bool>(parts.store_clients));
  os::UnixListener listener = os::UnixListener::autobind();
  // An error here must reach the other ranks. So it is thrown only after this rank has met them.
  std::exception_ptr problem;
  std::string said;
  try {
    require_of_kernel();
    heed_settings(parts, options, config, providers);
  } catch (const Error& error) {
    problem = std::current_exception();
    said = error.what();
  }
  const Card own{.build = own_build(providers),
                 .host = base::environment("HOCKET_HOST").value_or("") + os::host_identity(),
                 .host_name = os::host_name(),
                 .machine = os::machine_identity(),
                 .listener = listener.name(),
                 .token = random_job_token(),
                 .engines = fmt::format("{}", fmt::join(parts.engines.names(), ",")),
                 .algorithms = config.algorithm,
                 .problem = said,
                 .allotment = os::to_text(os::find_allotment())};
  const auto cards_of_all = [&] {
    try {
      return exchange_cards(*store, own, launch, join_timeout(options), deadline);
    } catch (const RendezvousError&) {
      if (problem) std::rethrow_exception(problem);  // other ranks may have failed because of it
      throw;
    }
  };
  auto cards = cards_of_all();
  // From here on each rank finds the same error in the cards.
  attendance.set_known_to_all(true);
  if (problem) std::rethrow_exception(problem);
  require_agreement(cards);
  attendance.set_known_to_all(false);
  tell_apart(cards, parts.engines);
  const Placement placement = place_ranks(cards, launch.rank);
  parts.hosts = placement.hosts;
  parts.host_ranks = places(placement, launch.rank);
  if (parts.trace) parts.trace->set_host(placement.hosts[static_cast<std::size_t>(launch.rank)]);
  parts.host_rank = placement.host_ranks[static_cast<std::size_t>(launch.rank)];
  parts.pace = own_pace(cards, launch.rank);
  const bool spans = placement.neighbours != launch.size;
  if (spans) parts.engines.span_hosts();
  if (spans && parts.engines.far()) {
    std::vector<std::string> names;
    for (const Card& card : cards) names.push_back(card.host_name);
    connect_hosts(parts, *store, {.config = config, .host_names = names}, deadline);
  }
  if (launch.rank == placement.leader) {
    const world::GroupShape world{.size = launch.size, .local = placement.neighbours};
    parts.segment =
        make_segment({.ranks = placement.neighbours,
                      .remote = launch.size - placement.neighbours,
                      .stripe_bytes = stripe_bytes(options, config, parts.engines, world)},
                     config,
                     false);
    hand_out(*parts.segment, listener, own.token, others_here(placement, launch.rank), deadline);
  } else {
    const Card& leader = cards[static_cast<std::size_t>(placement.leader)];
    try {
      parts.segment = fetch(leader.listener,
                            {.token = leader.token, .rank = launch.rank},
                            placement.leader,
                            deadline);
    } catch (const RendezvousError&) {
      attendance.look_for_reason();
      throw;
    }
  }
  parts.store = store;
  return parts;
}

}  // namespace hocket::joining
