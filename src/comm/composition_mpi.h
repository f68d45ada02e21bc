// The composition root's part for MPI: its communicators for hocket's groups.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "comm/communicator_impl.h"
#include "comm/device_engines.h"
#include "cuda/context.h"
#include "engine/device_engine.h"
#include "engine/engine.h"
#include "hocket/launch.h"
#include "hocket/store.h"

namespace hocket::comm {

// MPI in this process, and which of its ranks the world's are. A resource; any thread.
class MpiHome {
 public:
  virtual ~MpiHome() = default;
  // All engines of a group, once they are made: which of them carries a call.
  using Rivals = std::shared_ptr<std::vector<engine::CollectiveEngine*>>;
  // Collective over the group's members. Messages from MPI ring nobody's bell, so that whoever
  // waits has to keep asking.
  virtual std::unique_ptr<engine::CollectiveEngine> make_engine(const call::Membership& membership,
                                                                const engine::GroupFacts& facts,
                                                                control::GroupControl& control,
                                                                Rivals rivals) = 0;
  // What HOCKET_MPI_GPUS says here.
  virtual UseGpus use_gpus() const noexcept = 0;
  // Movement and messages of GPUs in the communicator of a group that `make_engine` was called for.
  virtual std::unique_ptr<engine::DeviceEngine> make_device_engine(
      const call::Membership& membership,
      std::shared_ptr<const cuda::DeviceContext> device,
      bool always,
      std::function<bool()> interrupted) = 0;
  // The group is closed on this rank, whose hold of the group's block this takes over. Its
  // communicator goes once it is quiet on all ranks, or stays MPI's for good.
  virtual void retire(const call::Membership& membership,
                      control::HostControl& host,
                      std::uint64_t block) noexcept = 0;
  // The world ends: all that is not quiet so far stays.
  virtual void end() noexcept = 0;
  // A rank of the world has died, so that MPI can neither make communicators any more nor end.
  virtual void forsake() noexcept = 0;
};

// The MPIs that this build can use: "Open MPI", "MPICH".
std::vector<std::string> known_mpis();
// Starts one of these and ends it, which may crash or hang: see os::run_in_child. What it is, and
// what it says of GPUs' memory: "Open MPI v4.1.4 says no".
std::string look_at_mpi(const std::string& name);

// Collective over the job's ranks, which tell each other by `store` (null where there is one rank).
// Throws RendezvousError where there is no MPI, or not one that all ranks share.
std::shared_ptr<MpiHome> make_mpi_home(Store* store,
                                       const LaunchInfo& launch,
                                       UseGpus use_gpus,
                                       base::Deadline deadline);

}  // namespace hocket::comm
