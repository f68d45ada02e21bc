// The record that is written when a communicator fails, or on request, to be read afterwards.
#pragma once

#include <string>
#include <vector>

#include "hocket/error.h"

namespace hocket::observe {

// The data of a flight record. A value.
struct FlightRecord {
  int world_rank = 0;
  std::string communicator;
  std::string error;             // empty: none so far
  std::vector<RankCall> recent;  // this rank's last calls, oldest first
  std::vector<RankCall> ranks;   // the last known call of each rank
};

// Returns the text that people read.
std::string to_text(const FlightRecord& record);

// Writes DIRECTORY/rank-N.COMMUNICATOR.txt, and replaces an existing one; '/' in a name becomes
// '-'. Makes the directory if needed. Returns the file's name. Throws SystemError.
std::string write(const FlightRecord& record, const std::string& directory);

}  // namespace hocket::observe
