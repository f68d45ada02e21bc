// Joining a job by a process group of the user's own: whatever can tell ranks apart, broadcast
// bytes and reduce integers will do. It is used while the world is set up, and never after.
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

// A process group, to be derived from. Its ranks become the world's. All ranks call `broadcast` and
// `all_reduce` alike and in one order, from the thread that calls `init`; both block. What they
// throw leaves `init` as it is. The key of the job travels by it, so that its peers must be those
// of the job.
class Bootstrap {
 public:
  // What `all_reduce` does with two integers.
  enum class Fold : std::uint8_t { kSum, kMin, kMax };

  virtual ~Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The root's bytes, of one length on all ranks, to everybody.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // Each value becomes the fold of all ranks' values at its place; sums wrap around.
  virtual void all_reduce(std::span<std::int64_t> values, Fold fold) = 0;

 protected:
  Bootstrap() = default;
  // What `all_reduce` is made of: each of `values` becomes its fold with that of `theirs`, as many,
  // at its place.
  static void fold_into(std::span<std::int64_t> values,
                        std::span<const std::int64_t> theirs,
                        Fold fold);
};

// Joins by `bootstrap`, which is not needed afterwards; whatever the environment says of ranks and
// addresses is left aside. Where the ranks are on one host they meet there; where on several, rank
// 0 serves at `options.address` ("host:port", port 0 for any) or, without one, at the first address
// of its host that is not loopback. Throws on all ranks what is wrong on one. `options.timeout`
// does not bound the bootstrap's own calls.
World init(Bootstrap& bootstrap, const InitOptions& options = {});

// A bootstrap by a store that all ranks reach, under names that begin with "bootstrap/". `timeout`
// is for each of its calls.
std::unique_ptr<Bootstrap> make_store_bootstrap(std::shared_ptr<Store> store,
                                                int rank,
                                                int size,
                                                Duration timeout = std::chrono::seconds(300));

}  // namespace hocket
