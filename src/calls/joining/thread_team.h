// Ranks that are threads of one process: their shared resources, and how each joins.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calls/world/world.h"
#include "hocket/group.h"

namespace hocket::joining {

// Resources of this process that all its teams share. A value.
struct TeamResources {
  std::shared_ptr<device::DeviceLibraries> device_libraries;
  engine::ProviderList providers;
};
// Makes the resources; `make` returns the providers of this build.
TeamResources team_resources(const InitOptions& options, const world::MakeProviders& make);

// Throws InvalidArgument if a team cannot have `size` ranks. Call it before memory is allocated for
// each rank.
void require_team_of(int size);

// A resource, which must live until all ranks have joined. Call `join` in any thread, once for each
// rank.
class ThreadTeam {
 public:
  // Uses these options: engines, deadline, segment_bytes, library_folders. Throws SystemError if an
  // audit is wanted and cannot be written.
  ThreadTeam(int size, const InitOptions& options, const TeamResources& resources);

  // Blocks until all ranks have joined.
  World join(int rank) const;

 private:
  int size_;
  std::shared_ptr<os::Segment> segment_;
  std::shared_ptr<device::DeviceLibraries> libraries_;
  world::JobEngines engines_;
  algorithm::Choices algorithms_;
  Duration deadline_;
  base::WaitTimes waits_;
  bool is_shown_ = true;
  std::string dump_directory_;
  std::string audit_folder_;
  std::vector<os::Pace> paces_;                              // by rank
  std::vector<std::shared_ptr<observe::AuditFile>> audits_;  // by rank; none: no audit
};

// Does the work of hocket::run_threads.
void run_threads(int size,
                 const std::function<void(Communicator&)>& body,
                 const InitOptions& options,
                 const world::MakeProviders& make);

}  // namespace hocket::joining
