#include "engines.h"

#include "algorithm/algorithm_engine.h"
#include "engines/local/local_point_to_point.h"

namespace hocket::conformance {
namespace {

// The floor over threads.
class LocalTeam final : public Team {
 public:
  LocalTeam(int size, const algorithm::Tuning& tuning)
      : fabric_(std::make_shared<engines::local::LocalFabric>(size)) {
    for (int rank = 0; rank < size; ++rank) {
      messages_.push_back(std::make_unique<engines::local::LocalPointToPoint>(fabric_, rank));
      const engine::GroupFacts facts{.rank = rank, .size = size, .hosts = {}};
      engines_.push_back(
          std::make_unique<algorithm::AlgorithmEngine>(*messages_.back(), facts, tuning));
    }
  }
  Seat seat(int rank) override {
    const auto r = static_cast<std::size_t>(rank);
    return {.rank = rank,
            .size = fabric_->size(),
            .engine = engines_[r].get(),
            .messages = messages_[r].get()};
  }

 private:
  std::shared_ptr<engines::local::LocalFabric> fabric_;
  std::vector<std::unique_ptr<engines::local::LocalPointToPoint>> messages_;
  std::vector<std::unique_ptr<algorithm::AlgorithmEngine>> engines_;
};

EngineCase local_case(std::string name, const algorithm::Tuning& tuning) {
  return {.name = std::move(name), .run = [tuning](int size, const Body& body) {
            return run_threads(size, std::make_unique<LocalTeam>(size, tuning), body);
          }};
}

}  // namespace

const std::vector<EngineCase>& engine_cases() {
  static const std::vector<EngineCase> cases{
      local_case("local", {}),
      // The algorithms for long arrays, in many pieces, on short ones too.
      local_case("local_long", {.short_bytes = 0, .scratch_bytes = 1000}),
      // The algorithms for short arrays on long ones too.
      local_case("local_short", {.short_bytes = std::size_t{1} << 40, .scratch_bytes = 1000}),
  };
  return cases;
}

}  // namespace hocket::conformance
