// Joins the ranks of a job: from a LaunchInfo to a Store in which all meet.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "hocket/launch.h"
#include "hocket/store.h"
#include "membership/rendezvous/store/request_store.h"

namespace hocket::rendezvous {

// Claims this rank at the job's store. Serves the store first if rank 0 has to and does not serve
// it yet by `server`. The server lives as long as rank 0's Store. Jobs of one get a memory store.
// At the timeout it throws RendezvousError with the refusal, or with the rank that does not serve.
struct Joined {
  std::shared_ptr<Store> store;
  std::shared_ptr<MemberStore> member = {};  // the same; null in a job of one
  // Number of the server's clients, as long as it lives here; an empty function if it never did.
  std::function<std::optional<std::size_t>()> clients = {};
};
Joined join(const LaunchInfo& launch, Duration timeout, std::optional<StoreServer> server = {});

}  // namespace hocket::rendezvous
