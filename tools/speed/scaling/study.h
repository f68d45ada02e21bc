// Functions that ask the simulation for the time of each algorithm, and the cost model for the
// algorithm that it chooses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/call.h"
#include "engines/algorithm/algorithm_engine.h"
#include "engines/algorithm/catalogue.h"

namespace hocket::scaling {

// A collective on float32 arrays, on hosts of `per_host` ranks each. `bytes` is the size of the
// larger one of a rank's two arrays, which has at least one element per rank. A value.
struct Case {
  engine::Kind kind = engine::Kind::kAllReduce;
  std::size_t bytes = 8;
  int ranks = 8;
  int per_host = 1;

  engine::Signature signature() const;
};

// Says how a collective runs: by one algorithm over all ranks, or by the hierarchy, which
// communicates within hosts and between hosts separately. A value.
struct Route {
  std::optional<algorithm::Algorithm> algorithm;  // absent: the hierarchy

  std::string name() const;
  bool operator==(const Route&) const = default;
};

// Returns all routes by which the case can run.
std::vector<Route> routes_of(const Case& c);
// Returns the route that the cost model chooses.
Route chosen(const Case& c);

struct Outcome {
  double microseconds = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes_between_hosts = 0;
  std::uint32_t most_of_a_rank = 0;  // the largest number of unfinished messages of one rank
};
// Returns nothing if the case takes more than `most_messages`.
std::optional<Outcome> simulate(const Case& c, const Route& route, std::uint64_t most_messages);
// Returns the time that the cost model predicts, in microseconds.
double predicted(const Case& c, const Route& route);

}  // namespace hocket::scaling
