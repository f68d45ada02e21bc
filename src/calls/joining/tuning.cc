#include "calls/joining/tuning.h"

#include <bit>

#include "engines/algorithm/algorithm_engine.h"
#include "engines/algorithm/catalogue.h"
#include "engines/algorithm/cost_model.h"
#include "foundation/base/hash.h"

namespace hocket::joining {
namespace {

using engine::Kind;

// Sizes at which different terms of the cost model dominate.
constexpr std::uint64_t kCounts[] = {1, 3000, 1'000'000, 100'000'000};
constexpr int kRanks[] = {2, 5, 64};

std::uint64_t hash_of_model(const algorithm::NetworkCosts& network,
                            const algorithm::Pieces& pieces) {
  std::uint64_t hash = base::kHashSeed;
  for (const engine::KindRow& row : engine::kKinds) {
    const Kind kind = row.kind;
    for (const algorithm::Way& way : algorithm::ways_of(kind)) {
      for (const std::uint64_t count : kCounts) {
        const engine::Signature signature{.kind = kind, .dtype = DType::kFloat32, .count = count};
        for (const int ranks : kRanks) {
          const double cost =
              algorithm::predicted_us(way.algorithm, signature, ranks, network, pieces);
          hash = base::mix(hash, std::bit_cast<std::uint64_t>(cost));
        }
      }
    }
  }
  return hash;
}

}  // namespace

std::uint64_t tuning_hash(const engine::ProviderList& providers) {
  const algorithm::Tuning near{};
  algorithm::Tuning far{.network = algorithm::kTcp};
  far.chunk_bytes = algorithm::kChunkAcross;
  std::uint64_t hash = hash_of_model(near.network, near.pieces());
  hash = base::mix(hash, hash_of_model(far.network, far.pieces()));
  for (const auto& provider : providers) {
    hash = base::mix(hash, provider->tuning());
    hash = base::mix(hash, base::hash_of(provider->shipped_costs()));
  }
  return hash;
}

}  // namespace hocket::joining
