// What is written down when a communicator fails, for whoever looks afterwards.
#pragma once

#include <string>
#include <vector>

#include "hocket/error.h"

namespace hocket::observe {

// A value.
struct FlightRecord {
  int world_rank = 0;
  std::string communicator;
  std::string error;
  std::vector<RankCall> recent;  // this rank's last calls, oldest first
  std::vector<RankCall> ranks;   // what each rank was last seen in
};

// Writes DIRECTORY/rank-N.COMMUNICATOR.txt, replacing one that is there; '/' in a name becomes '-'.
// Makes the directory if need be. A failure to write is logged, as there is an error under way.
void write(const FlightRecord& record, const std::string& directory) noexcept;

}  // namespace hocket::observe
