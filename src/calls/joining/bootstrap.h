// Joins by a user's process group: from a Bootstrap to a place in a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hocket/bootstrap.h"
#include "hocket/launch.h"
#include "hocket/store.h"

namespace hocket::joining {

// A store where ranks can meet, and how to reach it. A resource.
struct OpenStore {
  StoreServer server;
  Key key;
  std::string job;
};
// Serves a store for `size` ranks with `key`, at `address` ("host:port" or "unix:NAME"), from the
// process of `rank`. Without an address, only this host can reach the store if `one_host`, else all
// hosts can. Throws RendezvousError and InvalidArgument.
OpenStore open_store(const std::string& address, int rank, int size, bool one_host, const Key& key);

// Returns a number for this host, equal on all of its ranks, and not negative.
std::int64_t hash_of_host();

// The result of a bootstrap: how this rank joins, and the store if this rank serves it.
struct Introduced {
  LaunchInfo launch;
  std::optional<StoreServer> server;
};

// Collective over the bootstrap's ranks: rank 0 serves a store with a new key, and tells the other
// ranks how to reach it. An error on one rank is thrown on all. `problem` is an error that this
// rank has found before.
Introduced introduce(Bootstrap& bootstrap, const InitOptions& options, std::string problem);

}  // namespace hocket::joining
