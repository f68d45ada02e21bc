// The key-value space that launchers of MPI offer their processes. Ranks on several hosts use it to
// exchange an address and a key before they meet.
#pragma once

#include <memory>
#include <string>

#include "hocket/bootstrap.h"
#include "hocket/launch.h"
#include "membership/rendezvous/launchers/launchers.h"

namespace hocket::rendezvous {

// A key-value space. A resource, and an abstract class. One thread uses it. Keys are words of at
// most 60 characters, and values are words of at most 1000. Failures are RendezvousErrors.
class LauncherSpace {
 public:
  virtual ~LauncherSpace() = default;
  virtual void put(const std::string& key, const std::string& value) = 0;
  // Makes all values that ranks have put available to all ranks. Collective: waits for all ranks.
  virtual void fence() = 0;
  virtual std::string get(int rank, const std::string& key) = 0;
};

// Opens the space of Hydra or Slurm: PMI 1 over the descriptor PMI_FD. Null if there is none.
std::unique_ptr<LauncherSpace> open_pmi_space();
// Opens the space of Open MPI or Slurm: PMIx, through its library. Null if the launcher has none,
// or if the library is not installed.
std::unique_ptr<LauncherSpace> open_pmix_space();

// Makes a bootstrap over `space`, for the ranks of `place`.
std::unique_ptr<Bootstrap> make_space_bootstrap(std::unique_ptr<LauncherSpace> space,
                                                const LaunchPlace& place);

// A job that a launcher of MPI has started on several hosts, and a bootstrap for its ranks.
// `bootstrap` is null in three cases: options or variables already say how to meet, all ranks are
// on this host, or the launcher has no key-value space.
struct LauncherMeeting {
  std::string launcher;
  std::unique_ptr<Bootstrap> bootstrap;
};
LauncherMeeting find_launcher_meeting(const InitOptions& options);

}  // namespace hocket::rendezvous
