#include "membership/rendezvous/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "foundation/base/deadline.h"
#include "foundation/base/interrupt.h"
#include "foundation/base/poll.h"
#include "hocket/error.h"
#include "membership/rendezvous/address.h"
#include "membership/rendezvous/wire/establish.h"

namespace hocket::rendezvous {
namespace {

// The time in which an earlier job, or an earlier epoch of this job, must leave the address.
constexpr Duration kStaleTimeout = std::chrono::seconds(10);

StoreServer::Options server_options(const LaunchInfo& launch, const Address& address) {
  StoreServer::Options options{.key = launch.key,
                               .job = launch.job,
                               .epoch = launch.epoch,
                               .size = launch.size,
                               .rank = launch.rank,
                               .trust_network = launch.trust_network};
  if (const auto* tcp = std::get_if<os::HostPort>(&address)) {
    options.address = tcp->host;
    options.port = tcp->port;
  } else {
    options.address = launch.store_address;
  }
  return options;
}

StoreClientOptions client_options(const LaunchInfo& launch, Duration timeout) {
  return {.address = launch.store_address,
          .key = launch.key,
          .job = launch.job,
          .epoch = launch.epoch,
          .rank = launch.rank,
          .size = launch.size,
          .timeout = timeout,
          .trust_network = launch.trust_network};
}

// How a rank got to the store of its job. A value.
struct Arrival {
  std::optional<StoreServer> server = {};  // the store that this process serves
  std::optional<Established> client = {};  // a connection to a store that no rank serves
  bool is_taken = false;                   // another process has taken the address
};

// Returns whether the job has a name. If it has none, another job may have got the same address.
bool is_named(const LaunchInfo& launch) { return !launch.job.empty(); }

// Tries once to join at the process that serves at the address. A process of another job refuses,
// and learns that two jobs use one address. Absent if a later attempt may succeed.
std::optional<Established> ask_once(const LaunchInfo& launch, Duration timeout, bool is_patient) {
  try {
    return establish(client_options(launch, std::min<Duration>(timeout, kForOtherJob)),
                     {.on_silence = OnSilence::kGiveUp, .is_named = is_named(launch)});
  } catch (const OtherJob&) {
    if (!is_patient) throw;
  } catch (const RendezvousError&) {  // if it lasts, `join` reports it
  }
  return std::nullopt;
}

// Serves the store. If a store that outlives this job's ranks (`hocket store`) has the address,
// joins there instead. If an earlier job still has the address, waits for its end.
Arrival serve(const LaunchInfo& launch, Duration timeout) {
  const Address address = parse_address(launch.store_address, "the store's address");
  const bool is_unix = std::holds_alternative<UnixName>(address);
  const auto until_refused = base::Deadline::in(std::min(timeout, kForOtherJob));
  Arrival arrival;
  const auto is_decided = [&] {
    try {
      arrival.server.emplace(server_options(launch, address));
      return true;
    } catch (const SystemError& error) {
      const int number = error.error_number();
      const bool is_elsewhere = number == EADDRINUSE || number == EADDRNOTAVAIL;
      if (!is_elsewhere) throw;
      if (number == EADDRNOTAVAIL) return arrival.is_taken = true;
    }
    base::throw_if_interrupted(fmt::format("the wait for {}", launch.store_address));
    arrival.client = ask_once(launch, timeout, !until_refused.has_passed());
    arrival.is_taken = arrival.client || (!is_unix && until_refused.has_passed());
    return arrival.is_taken;
  };
  const auto deadline = base::Deadline::in(std::min(timeout, kStaleTimeout));
  if (base::poll_until(is_decided, deadline, std::chrono::milliseconds(20))) return arrival;
  throw RendezvousError(
      fmt::format("another job meets at {}; wait for its end, or give this one an address of its "
                  "own (HOCKET_STORE, or the launcher's port)",
                  launch.store_address));
}

// A resource: a server and a client. Both end when the last user in this process releases them, the
// client first.
struct ServedStore {
  std::optional<StoreServer> server;
  std::shared_ptr<MemberStore> client;
};

}  // namespace

Joined join(const LaunchInfo& launch, Duration timeout, std::optional<StoreServer> server) {
  if (launch.size == 1) return {.store = make_memory_store()};
  auto served = std::make_shared<ServedStore>();
  served->server = std::move(server);
  const bool is_to_serve = launch.rank == 0 && launch.rank_zero_serves;
  Arrival arrival;
  if (is_to_serve && !served->server) arrival = serve(launch, timeout);
  if (arrival.server) served->server = std::move(arrival.server);
  const StoreClientOptions options = client_options(launch, timeout);
  if (!arrival.client) {
    arrival.client =
        establish(options,
                  {.stale_timeout = kStaleTimeout,
                   .on_silence = arrival.is_taken ? OnSilence::kGiveUp : OnSilence::kTryAgain,
                   .is_named = is_named(launch)});
  }
  served->client = make_client(*std::move(arrival.client), options);
  const std::shared_ptr<MemberStore> member(served, served->client.get());
  member->watch(launch.size, timeout);
  Joined joined{.store = member, .member = member};
  if (served->server) {
    joined.clients = [weak = std::weak_ptr(served)] {
      const auto alive = weak.lock();
      return alive ? std::optional(alive->server->clients()) : std::nullopt;
    };
  }
  return joined;
}

}  // namespace hocket::rendezvous
