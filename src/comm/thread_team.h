// Ranks that are threads of one process: what they share, and how each joins.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/world.h"
#include "hocket/group.h"

namespace hocket::comm {

std::shared_ptr<DeviceLibraries> device_libraries(const InitOptions& options);

// A resource; lives at least until all have joined. `join` in any thread, once for each rank.
class ThreadTeam {
 public:
  // Of `options`: engines, deadline, segment_bytes, library_folders.
  ThreadTeam(int size, const InitOptions& options, std::shared_ptr<DeviceLibraries> libraries);

  // Blocks until all have come.
  World join(int rank) const;

 private:
  int size_;
  std::shared_ptr<os::Segment> segment_;
  std::shared_ptr<ThreadJob> job_;
  std::shared_ptr<DeviceLibraries> libraries_;
  std::vector<std::string> engines_;
  algorithm::Choices algorithms_;
  Duration deadline_;
  std::string dump_directory_;
};

}  // namespace hocket::comm
