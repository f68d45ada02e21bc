// From a user's process group to a place in a job.
#pragma once

#include <optional>

#include "hocket/bootstrap.h"
#include "hocket/launch.h"
#include "hocket/store.h"

namespace hocket::joining {

// What all ranks know when they have met by a bootstrap; rank 0 serves.
struct Introduced {
  LaunchInfo launch;
  std::optional<StoreServer> server;
};

// Collective over the bootstrap's ranks: rank 0 serves a store with a new key and tells the others.
// Throws on all ranks what is wrong on one, such as `problem`, which this one has found before.
Introduced introduce(Bootstrap& bootstrap, const InitOptions& options, std::string problem);

}  // namespace hocket::joining
