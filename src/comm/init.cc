// From a process that was just started to a world.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "base/config.h"
#include "comm/world.h"
#include "hocket/object.h"
#include "os/host_identity.h"
#include "os/socket.h"
#include "os/unix_socket.h"
#include "rendezvous/join.h"

namespace hocket {
namespace {

using base::Deadline;

// Proves to a host's first rank that whoever connects is of this job. Travels through the store.
using Token = std::array<std::byte, 16>;

Token random_token() {
  Token token;
  std::random_device source;
  for (auto& byte : token) byte = static_cast<std::byte>(source() & 0xff);
  return token;
}

// What each rank tells the others, through the store.
struct Card {
  std::string host;       // identity
  std::string host_name;  // for people
  std::string listener;   // abstract AF_UNIX name
  Token token;
};

Object to_object(const Card& card) {
  return Object::list({card.host,
                       card.host_name,
                       card.listener,
                       Object::bytes(std::span<const std::byte>(card.token))});
}

Card to_card(const Bytes& bytes) {
  const Object object = decode(bytes);
  const auto& token = object[3].as_bytes();
  Card card{.host = object[0].as_string(),
            .host_name = object[1].as_string(),
            .listener = object[2].as_string(),
            .token = {}};
  if (token.size() != card.token.size()) {
    throw RendezvousError("a rank's card at the store is damaged");
  }
  std::copy(token.begin(), token.end(), card.token.begin());
  return card;
}

// Which host each rank is on, and its number there.
struct Seating {
  std::vector<int> hosts;
  std::vector<int> host_ranks;
  int leader = 0;      // the first rank of this one's host
  int neighbours = 1;  // ranks on this host
};

Seating seat(const std::vector<Card>& cards, int rank) {
  Seating seating;
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
    seating.hosts.push_back(static_cast<int>(at));
    seating.host_ranks.push_back(count[at]++);
  }
  const auto own = static_cast<std::size_t>(seating.hosts[static_cast<std::size_t>(rank)]);
  seating.leader = first[own];
  seating.neighbours = count[own];
  return seating;
}

std::size_t stripe_bytes(const InitOptions& options, const base::Config& config, int ranks) {
  constexpr std::size_t kGiB = std::size_t{1} << 30;
  std::size_t wanted = options.segment_bytes.value_or(config.segment_bytes);
  if (wanted == 0) wanted = (os::memory_bytes() + kGiB - 1) / kGiB * kGiB;
  const std::size_t allowed = os::allowed_segment_bytes(wanted * static_cast<std::size_t>(ranks)) /
                              static_cast<std::size_t>(ranks);
  constexpr std::size_t kUnit = std::size_t{1} << 20;
  return std::max(kUnit, allowed / kUnit * kUnit);
}

std::shared_ptr<os::Segment> make_segment(int ranks, std::size_t stripe, bool threads) {
  const std::size_t bytes = control::HostControl::segment_bytes(ranks, stripe);
  auto segment = std::make_shared<os::Segment>(threads ? os::Segment::create_private(bytes)
                                                       : os::Segment::create(bytes));
  control::HostControl::format(*segment, ranks, stripe);
  return segment;
}

// The first rank of the host hands the segment to each other one.
void hand_out(const os::Segment& segment,
              os::UnixListener& listener,
              const Token& token,
              int others,
              Deadline deadline) {
  const std::uint64_t bytes = segment.size();
  while (others > 0) {
    const os::Fd peer = listener.accept(deadline);
    if (os::peer_credentials(peer).uid != getuid()) continue;
    Token shown;
    try {
      os::receive_all(peer, shown, std::min(deadline, Deadline::in(std::chrono::seconds(5))));
    } catch (const Error&) {
      continue;  // whoever it was, it is not of this job
    }
    if (shown != token) continue;
    os::send_fd(peer, segment.fd(), std::as_bytes(std::span(&bytes, 1)), deadline);
    --others;
  }
}

std::shared_ptr<os::Segment> fetch(const Card& leader, Deadline deadline) {
  const os::Fd socket = os::connect_abstract(leader.listener, deadline);
  if (os::peer_credentials(socket).uid != getuid()) {
    throw RendezvousError("another user's process answers for this job's shared memory");
  }
  os::send_all(socket, leader.token, deadline);
  std::uint64_t bytes = 0;
  os::Fd fd = os::receive_fd(socket, std::as_writable_bytes(std::span(&bytes, 1)), deadline);
  return std::make_shared<os::Segment>(os::Segment::map(std::move(fd), bytes));
}

comm::WorldParts meet(const InitOptions& options,
                      const base::Config& config,
                      const LaunchInfo& launch,
                      Deadline deadline) {
  comm::WorldParts parts{.launch = launch};
  const auto store = rendezvous::join(launch, deadline.left());
  os::UnixListener listener = os::UnixListener::autobind();
  const Card own{.host = base::environment("HOCKET_HOST").value_or("") + os::host_identity(),
                 .host_name = os::host_name(),
                 .listener = listener.name(),
                 .token = random_token()};
  std::vector<Card> cards;
  for (const Bytes& bytes : store->exchange(
           "hocket/cards", launch.rank, launch.size, encode(to_object(own)), deadline.left())) {
    cards.push_back(to_card(bytes));
  }
  const Seating seating = seat(cards, launch.rank);
  if (*std::max_element(seating.hosts.begin(), seating.hosts.end()) > 0) {
    std::vector<std::string> names;
    for (const Card& card : cards) names.push_back(card.host_name);
    throw RendezvousError(fmt::format(
        "the ranks run on several hosts ({}), and this hocket has engines for one host only",
        fmt::join(names, ", ")));
  }
  parts.hosts = seating.hosts;
  parts.host_ranks = seating.host_ranks;
  parts.host_rank = seating.host_ranks[static_cast<std::size_t>(launch.rank)];
  if (launch.rank == seating.leader) {
    parts.segment =
        make_segment(seating.neighbours, stripe_bytes(options, config, seating.neighbours), false);
    hand_out(*parts.segment, listener, own.token, seating.neighbours - 1, deadline);
  } else {
    parts.segment = fetch(cards[static_cast<std::size_t>(seating.leader)], deadline);
  }
  parts.store = store;
  return parts;
}

comm::WorldParts alone(const InitOptions& options,
                       const base::Config& config,
                       const LaunchInfo& launch) {
  return {.launch = launch,
          .segment = make_segment(1, stripe_bytes(options, config, 1), false),
          .hosts = {0},
          .host_ranks = {0}};
}

}  // namespace

World init(const InitOptions& options) {
  const base::Config config = base::Config::from_environment();
  const LaunchInfo launch = detect_launch(options);
  base::configure_log(config.log, launch.size > 1 ? launch.rank : -1);
  const auto deadline = Deadline::in(options.timeout.value_or(std::chrono::seconds(300)));
  comm::WorldParts parts =
      launch.size == 1 ? alone(options, config, launch) : meet(options, config, launch, deadline);
  parts.engines = comm::choose_engines(
      options.engines.empty() ? comm::split_names(config.engines) : options.engines, false);
  parts.deadline = options.deadline.value_or(config.deadline);
  parts.dump_directory = config.flight_recorder_dir;
  const auto world = comm::WorldImpl::make(std::move(parts), deadline);
  return World(world, world->make_communicator());
}

void run_threads(int size,
                 const std::function<void(Communicator&)>& body,
                 const InitOptions& options) {
  if (size < 1) throw InvalidArgument(fmt::format("size is {}, expected at least 1", size));
  const base::Config config = base::Config::from_environment();
  const auto n = static_cast<std::size_t>(size);
  const auto segment =
      make_segment(size, options.segment_bytes.value_or(std::size_t{1} << 30), true);
  const auto job = comm::make_thread_job();
  const auto engines = comm::choose_engines(
      options.engines.empty() ? comm::split_names(config.engines) : options.engines, true);
  std::mutex mutex;
  std::exception_ptr first;
  const auto rank_main = [&](int rank) {
    std::optional<World> world;
    try {
      comm::WorldParts parts{.launch = {.rank = rank, .size = size, .launcher = "threads"},
                             .segment = segment,
                             .host_rank = rank,
                             .hosts = std::vector<int>(n),
                             .host_ranks = std::vector<int>(n),
                             .threads = job,
                             .engines = engines,
                             .deadline = options.deadline.value_or(config.deadline),
                             .dump_directory = config.flight_recorder_dir};
      for (std::size_t i = 0; i < n; ++i) parts.host_ranks[i] = static_cast<int>(i);
      const auto impl =
          comm::WorldImpl::make(std::move(parts), Deadline::in(std::chrono::seconds(60)));
      world.emplace(impl, impl->make_communicator());
      body(world->communicator());
    } catch (...) {
      // The others hear of it instead of waiting for this rank.
      if (world) world->communicator().abort("an exception ended its thread");
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(rank_main, rank);
  threads.clear();
  if (first) std::rethrow_exception(first);
}

// --- World --------------------------------------------------------------------------------------

World::World(std::shared_ptr<comm::WorldImpl> impl, Communicator communicator) noexcept
    : impl_(std::move(impl)),
      communicator_(std::make_unique<Communicator>(std::move(communicator))) {}
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;
World::~World() {
  if (impl_) close();
}
const LaunchInfo& World::launch() const noexcept { return impl_->launch(); }
std::span<const std::string> World::engines() const noexcept { return impl_->engines(); }
void World::close() {
  communicator_->close();
  impl_->leave();
}

}  // namespace hocket
