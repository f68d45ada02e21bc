// A process group: one set of ranks, and the three communicators that hierarchical programs use.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "hocket/communicator.h"
#include "hocket/held.h"
#include "hocket/launch.h"

namespace hocket {

namespace world {
class WorldImpl;
}

// A resource: this process's part in a job, from `init` until `close`, or else until the process
// ends. Neither end waits for other ranks, but both wait for calls on GPUs: see
// Communicator::close. Threads may use it as they may use its communicator.
class [[nodiscard("dropped, it leaves the job at once: keep it to the end")]] World {
 public:
  World(std::shared_ptr<world::WorldImpl> impl, Communicator communicator) noexcept;
  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  // Rank, size and groups are those of the communicator of all ranks.
  int rank() const { return communicator().rank(); }
  int size() const { return communicator().size(); }
  Communicator& communicator() const { return *communicator_; }
  Communicator& intra_node() { return communicator().intra_node(); }
  Communicator& inter_node() { return communicator().inter_node(); }
  Communicator new_group(std::span<const int> ranks) { return communicator().new_group(ranks); }
  Communicator new_group(std::initializer_list<int> ranks) {
    return communicator().new_group(ranks);
  }
  // Continues with the ranks that are left. Afterwards `communicator` returns the result of
  // Communicator::rebuild. References to the old communicator stay valid and refer to the new one.
  // Parameters and errors are those of Communicator::rebuild.
  Communicator& rebuild(const RebuildOptions& options = {});
  // Returns how this process was started, and where it meets the other ranks.
  const LaunchInfo& launch() const;
  // Returns the names of the engines in use, best first.
  std::span<const std::string> engines() const;
  // Leaves the job and closes the communicator. Throws as Communicator::close does.
  void close();
  // Delays leaving the job until the process exits, so that the other ranks learn its exit status.
  // Use it for a world that is closed because the process is about to exit.
  void leave_at_exit() noexcept;
  // Does the same as `tell_end` of hocket/exit.h, for this world alone.
  void tell_end(std::string_view why) noexcept;

 private:
  Held<"World", std::shared_ptr<world::WorldImpl>> impl_;
  Held<"World", std::unique_ptr<Communicator>> communicator_;
};

// Joins the job that this process was started in, or makes a world of one rank. Blocks until all
// ranks have joined.
// @param options See InitOptions.
// @return This process's part in the job.
// @throws InvalidArgument for options and environment that contradict each other.
// @throws RendezvousError at the timeout; the message names the missing ranks.
World init(const InitOptions& options = {});

// Runs `body` on ranks that are threads of this process, each with its own communicator. Returns
// when all have ended, and throws the first error. It is for tests, notebooks and pools.
// @param size Number of ranks.
// @param body The function that each rank runs.
// @param options `engines`, `deadline` and `segment_bytes` apply; the rest is ignored.
void run_threads(int size,
                 const std::function<void(Communicator&)>& body,
                 const InitOptions& options = {});

}  // namespace hocket
