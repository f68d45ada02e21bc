// The questions to the simulation: the time of each algorithm, and the algorithm that would be
// chosen.
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

// A collective of float32 on hosts of `per_host` ranks. `bytes` is the size of the larger of a
// rank's arrays, at least one element per rank. A value.
struct Case {
  engine::Kind kind = engine::Kind::kAllReduce;
  std::size_t bytes = 8;
  int ranks = 8;
  int per_host = 1;

  engine::Signature signature() const;
};

// A way of a collective: an algorithm straight over all ranks, or the hierarchy. A value.
struct Route {
  std::optional<algorithm::Algorithm> algorithm;  // absent: the hierarchy

  std::string name() const;
  bool operator==(const Route&) const = default;
};

// Those there are for a case.
std::vector<Route> routes_of(const Case& c);
// The route that the cost model would choose.
Route chosen(const Case& c);

struct Outcome {
  double microseconds = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes_between_hosts = 0;
  std::uint32_t most_of_a_rank = 0;
};
// Absent where it would take more than `most_messages`.
std::optional<Outcome> simulate(const Case& c, const Route& route, std::uint64_t most_messages);
// The prediction of the cost model, in microseconds.
double predicted(const Case& c, const Route& route);

}  // namespace hocket::scaling
