// Joins by a user's process group: from a Bootstrap to a place in a job.
#pragma once

#include <optional>

#include "hocket/bootstrap.h"
#include "hocket/launch.h"
#include "hocket/store.h"

namespace hocket::joining {

// The common knowledge of ranks that have met by a bootstrap; rank 0 serves.
struct Introduced {
  LaunchInfo launch;
  std::optional<StoreServer> server;
};

// Collective over the bootstrap's ranks: rank 0 serves a store with a new key and tells the others.
// An error on one rank, such as `problem`, found before, is thrown on all.
Introduced introduce(Bootstrap& bootstrap, const InitOptions& options, std::string problem);

}  // namespace hocket::joining
