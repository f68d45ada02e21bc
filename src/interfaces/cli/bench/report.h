// The findings of a benchmark, as a table on the terminal, as JSON and as a page.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "interfaces/cli/bench/machine.h"
#include "interfaces/cli/bench/measure.h"
#include "interfaces/cli/quantities.h"

namespace hocket::cli::bench {

// A library's ranks, started in one number. A value.
struct Start {
  int ranks = 1;
  std::vector<std::string> processors;  // of each rank; empty where they did not start
  std::string launch;                   // the command line
};

// A library that took part, or should have. A value.
struct Participant {
  std::string name;
  std::string version;  // empty where it did not start
  std::vector<Start> starts;
};

// All results. A value.
struct Findings {
  std::string command;
  std::string date;
  Facts machine;
  Plan plan;                              // of the last number of ranks
  std::vector<int> ranks;                 // all numbers of them
  std::vector<Participant> participants;  // hocket first
  std::vector<Point> points;
  std::vector<Gap> gaps;
  std::vector<std::string> problems;
};

// The row of another library that a row of hocket's is compared with: the same collective, in place
// or not alike. Null if `library` has none.
const Row* counterpart(const Point& point, const Row& row, const std::string& library);

// Prints points as they come, with a heading when the collective changes. One thread.
class Table {
 public:
  Table(std::FILE* out, std::vector<std::string> peers) : out_(out), peers_(std::move(peers)) {}
  void add(const Point& point);

 private:
  void heading(const Row& row);
  void line(const Point& point, const Row* own, const Row& any);

  std::FILE* out_;
  std::vector<std::string> peers_;
  std::string heading_;
};

std::string to_json(const Findings& findings);

// The cost file that HOCKET_COSTS names: lines of all engines, without hocket's own choice.
std::string to_cost_table(const Findings& findings);

// A self-contained page: plots, tables, configuration.
std::string to_html(const Findings& findings);

}  // namespace hocket::cli::bench
