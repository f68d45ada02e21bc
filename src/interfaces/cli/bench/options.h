// The options of `hocket bench`, and the plan that follows from them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "interfaces/cli/bench/measure.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hocket::cli::bench {

// The options as they were typed. A value.
struct Arguments {
  std::vector<std::string> collectives;
  std::vector<int> ranks{2};  // measured one after the other
  std::string bind = "auto";
  std::string min = "8";
  std::string max = "64M";
  int factor = 4;
  std::vector<std::string> sizes;
  std::vector<std::string> dtypes{"float32"};
  std::string op = "sum";
  std::vector<std::string> memories{"ordinary"};
  std::string in_place = "no";
  bool dirty = false;
  std::string algorithm;  // empty: the cheapest
  std::vector<std::string> compare;
  // These tell whether an option was given.
  CLI::Option *compare_option = nullptr, *dtype_option = nullptr;
  std::string device = "host";
  std::string launch = "graph";
  std::string tune_file;
  std::optional<int> repeats;  // the defaults of repeats and batch_ms depend on the case
  std::optional<int> batch_ms;
  std::optional<int> seconds;  // for all of it
  int timeout_s = 60;
  std::string json_file;
  std::string html_file;
};

// Lets `command` take the options into `arguments`, which must outlive it.
void add_options(CLI::App& command, Arguments& arguments);

// Makes the plan for one of the numbers of ranks in `arguments.ranks`. Throws InvalidArgument that
// names the option.
Plan plan_of(const Arguments& arguments, int ranks);

// Throws InvalidArgument unless --algorithm names an algorithm of all these collectives.
void check_algorithm(const Arguments& arguments, const std::vector<Collective>& collectives);

// True if the arrays lie in GPUs' memory. Throws InvalidArgument if --device is unknown.
bool on_gpu(const Arguments& arguments);

// Returns the libraries to compare with. Throws InvalidArgument for an unknown name.
std::vector<std::string> peers_of(const Arguments& arguments);

}  // namespace hocket::cli::bench
