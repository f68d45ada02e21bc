// A process group: one set of ranks and the three communicators that hierarchical programs use.
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

// A resource: this process's part in a job, from `init` to its end. Closing is explicit
// (`close`) or left to the process's end; neither waits for anybody, but for calls on GPUs under
// way: see Communicator::close.
class [[nodiscard("dropped, it leaves the job at once: keep it to the end")]] World {
 public:
  World(std::shared_ptr<world::WorldImpl> impl, Communicator communicator) noexcept;
  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  int rank() const { return communicator().rank(); }
  int size() const { return communicator().size(); }
  Communicator& communicator() const { return *communicator_; }
  Communicator& intra_node() { return communicator().intra_node(); }
  Communicator& inter_node() { return communicator().inter_node(); }
  Communicator new_group(std::span<const int> ranks) { return communicator().new_group(ranks); }
  Communicator new_group(std::initializer_list<int> ranks) {
    return communicator().new_group(ranks);
  }
  // Goes on with the ranks that are left: `communicator` is what Communicator::rebuild returns,
  // also for who has a reference to it.
  Communicator& rebuild(const RebuildOptions& options = {});
  // How this process was started and by what it meets the others.
  const LaunchInfo& launch() const;
  // Names of the engines in use, best first.
  std::span<const std::string> engines() const;
  void close();
  // Closing it leaves the job only when the process exits, whose status the other ranks hear then.
  // For worlds that are closed because the process is about to exit.
  void leave_at_exit() noexcept;
  // As `tell_end` of hocket/exit.h, for this world alone.
  void tell_end(std::string_view why) noexcept;

 private:
  Held<"World", std::shared_ptr<world::WorldImpl>> impl_;
  Held<"World", std::unique_ptr<Communicator>> communicator_;
};

// Joins the job that this process was started in, or makes a world of one. Blocks until all ranks
// are there, or throws RendezvousError at the deadline and says who is missing.
World init(const InitOptions& options = {});

// Runs `body` on `size` ranks that are threads of this process, each with a communicator of its
// own, and returns when all have ended; rethrows the first error. For tests, notebooks and pools.
// `options`: engines, deadline, segment_bytes; the rest does not apply.
void run_threads(int size,
                 const std::function<void(Communicator&)>& body,
                 const InitOptions& options = {});

}  // namespace hocket
