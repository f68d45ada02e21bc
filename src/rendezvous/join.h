// From a LaunchInfo to a Store in which all ranks of the job meet.
#pragma once

#include <memory>
#include <optional>

#include "hocket/launch.h"
#include "hocket/store.h"

namespace hocket::rendezvous {

// Claims this rank at the job's store, first serving it where rank 0 has to, unless it serves
// already by `server`. Whoever holds the result of rank 0 keeps the server alive. Jobs of one get a
// memory store. Throws RendezvousError saying what was refused, or who serves nothing, at the
// timeout.
std::shared_ptr<Store> join(const LaunchInfo& launch,
                            Duration timeout,
                            std::optional<StoreServer> server = {});

}  // namespace hocket::rendezvous
