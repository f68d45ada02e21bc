// Jobs and their ranks as lines of text.
#pragma once

#include <string>
#include <vector>

#include "hocket/live.h"
#include "interfaces/cli/report.h"

namespace hocket::cli {

enum class SortedBy : std::uint8_t { kRank, kWaiting, kBytes, kSince };

// A value: how a job is shown.
struct TableView {
  int columns = 80;
  SortedBy sorted = SortedBy::kRank;
  int chosen = -1;  // the rank whose line is marked; -1: none
  int opened = -1;  // the rank whose last calls are shown; -1: none
  Colours colours = {};
};

// Returns lines without line ends, none longer than view.columns.
std::vector<std::string> jobs_table(const std::vector<FoundJob>& jobs, const TableView& view);
std::vector<std::string> job_head(const LiveJob& job,
                                  const std::string& command,
                                  const TableView& view);
std::vector<std::string> ranks_table(const LiveJob& job, const TableView& view);
std::vector<std::string> calls_table(const LiveRank& rank, const TableView& view);
// Returns the ranks in the order of their lines.
std::vector<const LiveRank*> in_order(const LiveJob& job, SortedBy sorted);

}  // namespace hocket::cli
