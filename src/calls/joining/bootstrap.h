// Joins by a user's process group: from a Bootstrap to a place in a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hocket/bootstrap.h"
#include "hocket/launch.h"
#include "hocket/store.h"

namespace hocket::joining {

// A store for ranks that are to meet. A resource.
struct OpenStore {
  StoreServer server;
  Key key;
  std::string job;
};
// Serves a store for `size` ranks with `key`, at `address` ("host:port" or "unix:NAME"), from the
// process of `rank`. Without an address it is reachable within this host, or from the others.
// Throws RendezvousError and InvalidArgument.
OpenStore open_store(const std::string& address, int rank, int size, bool one_host, const Key& key);

// Returns a number of this host, alike on all of its ranks and not negative.
std::int64_t hash_of_host();

// The common knowledge of ranks that have met by a bootstrap; rank 0 serves.
struct Introduced {
  LaunchInfo launch;
  std::optional<StoreServer> server;
};

// Collective over the bootstrap's ranks: rank 0 serves a store with a new key and tells the others.
// An error on one rank, such as `problem`, found before, is thrown on all.
Introduced introduce(Bootstrap& bootstrap, const InitOptions& options, std::string problem);

}  // namespace hocket::joining
