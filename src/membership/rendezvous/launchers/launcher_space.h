// The key-value space that MPI's launchers offer their processes. Ranks on several hosts use it to
// exchange an address and a key before they have met.
#pragma once

#include <memory>
#include <string>

#include "hocket/bootstrap.h"
#include "hocket/launch.h"
#include "membership/rendezvous/launchers/launchers.h"

namespace hocket::rendezvous {

// A resource; abstract. One thread. Keys and values are words without spaces, of at most 60 and
// 1000 characters. Failures are RendezvousErrors.
class LauncherSpace {
 public:
  virtual ~LauncherSpace() = default;
  virtual void put(const std::string& key, const std::string& value) = 0;
  // Makes all values that ranks have put available to all. Collective; waits for all.
  virtual void fence() = 0;
  virtual std::string get(int rank, const std::string& key) = 0;
};

// Hydra's, also spoken by Slurm: PMI 1 over the descriptor PMI_FD. Null if there is none.
std::unique_ptr<LauncherSpace> open_pmi_space();
// Open MPI's, also spoken by Slurm: PMIx by its library. Null if the launcher has none, or the
// library is not installed.
std::unique_ptr<LauncherSpace> open_pmix_space();

// A bootstrap by such a space, for the ranks of `place`.
std::unique_ptr<Bootstrap> make_space_bootstrap(std::unique_ptr<LauncherSpace> space,
                                                const LaunchPlace& place);

// A job that a launcher of MPI has started on several hosts, and the bootstrap of its ranks. Absent
// if options or variables say how to meet, if all ranks are on this host, or if the launcher has no
// such space.
struct LauncherMeeting {
  std::string launcher;
  std::unique_ptr<Bootstrap> bootstrap;  // null: absent
};
LauncherMeeting find_launcher_meeting(const InitOptions& options);

}  // namespace hocket::rendezvous
