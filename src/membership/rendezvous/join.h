// From a LaunchInfo to a Store in which all ranks of the job meet.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "hocket/launch.h"
#include "hocket/store.h"
#include "membership/rendezvous/store/request_store.h"

namespace hocket::rendezvous {

// Claims this rank at the job's store, first serving it where rank 0 has to, unless it serves
// already by `server`. Whoever holds the store of rank 0 keeps the server alive. Jobs of one get a
// memory store. Throws RendezvousError saying what was refused, or who serves nothing, at the
// timeout.
struct Joined {
  std::shared_ptr<Store> store;
  std::shared_ptr<MemberStore> member = {};  // the same; null in a job of one
  // How many are connected to the server, for as long as it is here; empty where it never was.
  std::function<std::optional<std::size_t>()> clients = {};
};
Joined join(const LaunchInfo& launch, Duration timeout, std::optional<StoreServer> server = {});

}  // namespace hocket::rendezvous
