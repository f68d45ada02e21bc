#include "study.h"

#include <algorithm>
#include <memory>

#include "engines/algorithm/hierarchy_engine.h"
#include "simulation.h"
#include "sizes_memory.h"

namespace hocket::scaling {

using algorithm::AlgorithmEngine;
using algorithm::Choices;
using algorithm::HierarchyEngine;
using engine::CollectiveEngine;
using engine::GroupFacts;
using engine::Kind;

namespace {

constexpr std::size_t kElement = 4;

bool is_whole(Kind kind) {
  return kind == Kind::kBroadcast || kind == Kind::kReduce || kind == Kind::kAllReduce;
}

GroupFacts facts_of(const Cluster& cluster, int rank) {
  return {.rank = rank,
          .size = static_cast<int>(cluster.hosts.size()),
          .hosts = cluster.hosts,
          .one_host = false};
}

// Returns the engine of each rank for one route.
std::vector<std::unique_ptr<CollectiveEngine>> engines_of(const Case& c,
                                                          const Route& route,
                                                          const Cluster& cluster,
                                                          Simulation& simulation) {
  std::vector<std::unique_ptr<CollectiveEngine>> engines;
  Choices forced;
  if (route.algorithm) forced.set(c.kind, *route.algorithm);
  const auto tuning = algorithm::across_hosts(cluster.hosts, forced);
  const auto map = std::make_shared<const algorithm::HostMap>(cluster.hosts);
  for (int rank = 0; rank < c.ranks; ++rank) {
    engine::PointToPoint& carrier = simulation.carrier(rank);
    if (route.algorithm) {
      engines.push_back(
          std::make_unique<AlgorithmEngine>(carrier, facts_of(cluster, rank), tuning));
    } else {
      engines.push_back(std::make_unique<HierarchyEngine>(carrier, map, rank));
    }
  }
  return engines;
}

engine::Call call_of(const Case& c, int rank) {
  engine::Call call{.signature = c.signature(), .sequence = 1};
  const bool is_root = rank == call.signature.root;
  call.in = input_addresses();
  call.out = output_addresses();
  if (c.kind == Kind::kBroadcast || c.kind == Kind::kScatter) {
    if (!is_root) call.in = nullptr;
  }
  if (c.kind == Kind::kReduce || c.kind == Kind::kGather) {
    if (!is_root) call.out = nullptr;
  }
  return call;
}

}  // namespace

engine::Signature Case::signature() const {
  engine::Signature s{.kind = kind, .dtype = DType::kFloat32};
  if (kind == Kind::kBarrier) return s;
  s.count = bytes / kElement;
  if (!is_whole(kind)) {
    s.count = std::max<std::uint64_t>(1, s.count / static_cast<std::uint64_t>(ranks));
  }
  return s;
}

std::string Route::name() const {
  return algorithm ? std::string(algorithm::name_of(*algorithm)) : "hierarchy";
}

std::vector<Route> routes_of(const Case& c) {
  std::vector<Route> routes;
  for (const auto& way : algorithm::ways_of(c.kind)) routes.push_back({way.algorithm});
  const Cluster cluster = cluster_of(std::min(c.ranks, 2 * c.per_host), c.per_host);
  Simulation small(cluster, Simulation::Bytes::kCount);
  const HierarchyEngine levels(small.carrier(0), facts_of(cluster, 0));
  if (levels.score(c.signature())) routes.push_back({});
  return routes;
}

double predicted(const Case& c, const Route& route) {
  const Cluster cluster = cluster_of(c.ranks, c.per_host);
  Simulation simulation(cluster_of(1, 1), Simulation::Bytes::kCount);
  engine::PointToPoint& carrier = simulation.carrier(0);
  if (!route.algorithm) {
    const HierarchyEngine levels(carrier, facts_of(cluster, 0));
    return levels.score(c.signature())->microseconds;
  }
  Choices forced;
  forced.set(c.kind, *route.algorithm);
  const AlgorithmEngine straight(
      carrier, facts_of(cluster, 0), algorithm::across_hosts(cluster.hosts, forced));
  return straight.choose(c.signature()).microseconds;
}

Route chosen(const Case& c) {
  const Cluster cluster = cluster_of(c.ranks, c.per_host);
  Simulation simulation(cluster_of(1, 1), Simulation::Bytes::kCount);
  engine::PointToPoint& carrier = simulation.carrier(0);
  const AlgorithmEngine straight(
      carrier, facts_of(cluster, 0), algorithm::across_hosts(cluster.hosts, {}));
  const HierarchyEngine levels(carrier, facts_of(cluster, 0));
  const auto choice = straight.choose(c.signature());
  const auto in_levels = levels.score(c.signature());
  if (in_levels && in_levels->microseconds <= choice.microseconds) return {};
  return {choice.algorithm};
}

std::optional<Outcome> simulate(const Case& c, const Route& route, std::uint64_t most_messages) {
  const Cluster cluster = cluster_of(c.ranks, c.per_host);
  Simulation simulation(cluster, Simulation::Bytes::kCount);
  const auto engines = engines_of(c, route, cluster, simulation);
  try {
    Outcome outcome;
    outcome.microseconds = simulation.run(
        [&](int rank) { return engines[static_cast<std::size_t>(rank)]->start(call_of(c, rank)); },
        most_messages);
    outcome.messages = simulation.messages();
    outcome.bytes_between_hosts = simulation.bytes_between_hosts();
    outcome.most_of_a_rank = simulation.most_of_a_rank();
    return outcome;
  } catch (const TooLong&) {
    return std::nullopt;
  }
}

}  // namespace hocket::scaling
