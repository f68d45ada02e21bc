// Joins the ranks of a job: leads from a LaunchInfo to a Store at which all ranks meet.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "hocket/launch.h"
#include "hocket/store.h"
#include "membership/rendezvous/store/request_store.h"

namespace hocket::rendezvous {

// The result of `join`. A value.
struct Joined {
  std::shared_ptr<Store> store;
  std::shared_ptr<MemberStore> member = {};  // the same object; null in a job of one rank
  // Returns the number of the server's clients. Absent if the server has ended. An empty function
  // if this process has never served the store.
  std::function<std::optional<std::size_t>()> clients = {};
};
// Joins the job's store as this rank. If rank 0 has to serve the store, and `server` does not serve
// it yet, rank 0 starts it first. The server lives as long as rank 0's Store. A job of one rank
// gets a store in memory. Throws RendezvousError at the timeout, with the refusal, or with the rank
// that does not serve.
Joined join(const LaunchInfo& launch, Duration timeout, std::optional<StoreServer> server = {});

}  // namespace hocket::rendezvous
