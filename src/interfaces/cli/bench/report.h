// The findings of a benchmark, as a table on the terminal, as JSON and as a page.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "interfaces/cli/bench/machine.h"
#include "interfaces/cli/bench/measure.h"
#include "interfaces/cli/quantities.h"

namespace hocket::cli::bench {

// A start of a library with one number of ranks. A value.
struct Start {
  int ranks = 1;
  std::vector<std::string> processors;  // by rank; empty if the library did not start
  std::string launch;                   // the command line
};

// A library that took part, or should have. A value.
struct Participant {
  std::string name;
  std::string version;  // empty if it did not start
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

// Returns the row of `library` that corresponds to a row of hocket: both rows are in place, or both
// are not. Null if there is none.
const Row* counterpart(const Point& point, const Row& row, const std::string& library);

// Prints points one by one, with a heading when the collective changes. One thread.
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

// Returns the text of a cost file for HOCKET_COSTS. It has lines for each engine, but none for
// hocket's own choice among them.
std::string to_cost_table(const Findings& findings);

// Returns a self-contained HTML page: plots, tables, configuration.
std::string to_html(const Findings& findings);

}  // namespace hocket::cli::bench
