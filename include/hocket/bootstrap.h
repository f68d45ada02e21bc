// Joins a job through a process group of the user's own. The group must tell ranks apart, broadcast
// bytes, and reduce integers. It is used only while the world is set up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "hocket/group.h"
#include "hocket/launch.h"
#include "hocket/store.h"
#include "hocket/types.h"

namespace hocket {

// An abstract process group: derive from it. Its ranks become the ranks of the world. All ranks
// make the same calls of `broadcast` and `all_reduce`, in one order, from the thread that calls
// `init`. Both calls block. Exceptions that they throw leave `init` unchanged. The job's key is
// sent through the group, so all of its peers must belong to the job.
class Bootstrap {
 public:
  // The operation that `all_reduce` applies to two integers.
  enum class Fold : std::uint8_t { kSum, kMin, kMax };

  virtual ~Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  // Returns the number of this rank, from 0.
  virtual int rank() const = 0;
  // Returns the number of ranks.
  virtual int size() const = 0;
  // Sends the root's bytes to all ranks.
  // @param bytes Read at the root, written elsewhere. The length is the same on all ranks.
  // @param root The rank that sends.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // Replaces each value by the reduction of all ranks' values with the same index. Sums wrap
  // around.
  virtual void all_reduce(std::span<std::int64_t> values, Fold fold) = 0;

 protected:
  Bootstrap() = default;
  // Helps to write `all_reduce`: combines each element of `values` with the element of `theirs`
  // that has the same index.
  static void fold_into(std::span<std::int64_t> values,
                        std::span<const std::int64_t> theirs,
                        Fold fold);
};

// Joins a job through `bootstrap`, which is not needed after the call. Ranks and addresses in the
// environment are ignored. If all ranks are on one host, they meet there. Otherwise rank 0 serves
// at `options.address` ("host:port"; port 0 means any). Without an address it uses the first
// address of its host that is not a loopback address.
// @param bootstrap The process group. Its own calls are not limited by `options.timeout`.
// @param options See InitOptions.
// @return This process's part in the job.
// @throws RendezvousError and others, on all ranks, if one rank fails.
World init(Bootstrap& bootstrap, const InitOptions& options = {});

// Makes a bootstrap from a store that all ranks can reach. It uses keys that begin with
// "bootstrap/".
// @param store The store. The bootstrap keeps it alive.
// @param rank Number of this rank, from 0.
// @param size Number of ranks.
// @param timeout Limit for each call of the bootstrap.
std::unique_ptr<Bootstrap> make_store_bootstrap(std::shared_ptr<Store> store,
                                                int rank,
                                                int size,
                                                Duration timeout = std::chrono::seconds(300));

}  // namespace hocket
