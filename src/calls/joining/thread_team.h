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
// `make` makes the build's providers.
TeamResources team_resources(const InitOptions& options, const world::MakeProviders& make);

// A resource; lives at least until all have joined. Call `join` in any thread, once for each rank.
class ThreadTeam {
 public:
  // Uses these of `options`: engines, deadline, segment_bytes, library_folders. Throws SystemError
  // if an audit is wanted and cannot be written.
  ThreadTeam(int size, const InitOptions& options, const TeamResources& resources);

  // Blocks until all have come.
  World join(int rank) const;

 private:
  int size_;
  std::shared_ptr<os::Segment> segment_;
  std::shared_ptr<device::DeviceLibraries> libraries_;
  world::JobEngines engines_;
  algorithm::Choices algorithms_;
  Duration deadline_;
  base::WaitTimes waits_;
  std::string dump_directory_;
  std::string audit_folder_;
  std::vector<os::Pace> paces_;                              // by rank
  std::vector<std::shared_ptr<observe::AuditFile>> audits_;  // by rank; none: no audit
};

// As hocket::run_threads.
void run_threads(int size,
                 const std::function<void(Communicator&)>& body,
                 const InitOptions& options,
                 const world::MakeProviders& make);

}  // namespace hocket::joining
