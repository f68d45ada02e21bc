// The list of the algorithms for each collective, and their names.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "engine/call.h"

namespace hocket::algorithm {

// The names of the algorithms in algorithms.h. One name may stand for similar algorithms of several
// collectives.
enum class Algorithm : std::uint8_t {
  kDissemination,
  kBinomial,
  kBinaryTree,
  kChain,
  kScatterRing,
  kRing,
  kBruck,
  kRecursiveDoubling,
  kRecursiveHalving,
  kRabenseifner,
  kDirect,
  kLinear,
  kPairwise,
  kGathered,
  kScattered,
};
inline constexpr std::size_t kAlgorithmCount = 15;
// Returns the name as a user writes it, for example "recursive_doubling".
std::string_view name_of(Algorithm algorithm) noexcept;

// A *way*: one algorithm for one kind of collective. `ordered` says whether its reductions combine
// the data in ascending rank order for all element types.
struct Way {
  engine::Kind kind;
  Algorithm algorithm;
  bool ordered = true;
};
// The complete list of ways, sorted by kind. If several ways have equal costs, the first one is
// chosen.
inline constexpr std::array kWays{
    Way{engine::Kind::kBarrier, Algorithm::kDissemination},

    Way{engine::Kind::kBroadcast, Algorithm::kBinomial},
    Way{engine::Kind::kBroadcast, Algorithm::kScatterRing},
    Way{engine::Kind::kBroadcast, Algorithm::kBinaryTree},
    Way{engine::Kind::kBroadcast, Algorithm::kChain},

    Way{engine::Kind::kReduce, Algorithm::kGathered},
    Way{engine::Kind::kReduce, Algorithm::kScattered},
    Way{engine::Kind::kReduce, Algorithm::kBinomial, false},
    Way{engine::Kind::kReduce, Algorithm::kBinaryTree, false},
    Way{engine::Kind::kReduce, Algorithm::kChain, false},
    Way{engine::Kind::kReduce, Algorithm::kRabenseifner, false},

    Way{engine::Kind::kAllReduce, Algorithm::kGathered},
    Way{engine::Kind::kAllReduce, Algorithm::kScattered},
    Way{engine::Kind::kAllReduce, Algorithm::kRecursiveDoubling, false},
    Way{engine::Kind::kAllReduce, Algorithm::kRabenseifner, false},
    Way{engine::Kind::kAllReduce, Algorithm::kRing, false},

    Way{engine::Kind::kScan, Algorithm::kGathered},
    Way{engine::Kind::kScan, Algorithm::kChain},
    Way{engine::Kind::kScan, Algorithm::kRecursiveDoubling, false},

    Way{engine::Kind::kExscan, Algorithm::kGathered},
    Way{engine::Kind::kExscan, Algorithm::kChain},
    Way{engine::Kind::kExscan, Algorithm::kRecursiveDoubling, false},

    Way{engine::Kind::kReduceScatter, Algorithm::kPairwise},
    Way{engine::Kind::kReduceScatter, Algorithm::kRecursiveHalving, false},
    Way{engine::Kind::kReduceScatter, Algorithm::kRing, false},

    Way{engine::Kind::kAllGather, Algorithm::kBruck},
    Way{engine::Kind::kAllGather, Algorithm::kRecursiveDoubling},
    Way{engine::Kind::kAllGather, Algorithm::kDirect},
    Way{engine::Kind::kAllGather, Algorithm::kRing},

    Way{engine::Kind::kGather, Algorithm::kLinear},
    Way{engine::Kind::kGather, Algorithm::kBinomial},

    Way{engine::Kind::kScatter, Algorithm::kLinear},
    Way{engine::Kind::kScatter, Algorithm::kBinomial},

    Way{engine::Kind::kAllToAll, Algorithm::kPairwise},
    Way{engine::Kind::kAllToAll, Algorithm::kBruck},

    Way{engine::Kind::kReduceScatterV, Algorithm::kPairwise},
    Way{engine::Kind::kReduceScatterV, Algorithm::kRecursiveHalving, false},
    Way{engine::Kind::kReduceScatterV, Algorithm::kRing, false},

    Way{engine::Kind::kAllGatherV, Algorithm::kDirect},
    Way{engine::Kind::kAllGatherV, Algorithm::kRing},

    Way{engine::Kind::kGatherV, Algorithm::kLinear},
    Way{engine::Kind::kScatterV, Algorithm::kLinear},
    Way{engine::Kind::kAllToAllV, Algorithm::kPairwise},
};
// Returns all ways of one kind: at least one way for a kind that engines carry, no way for others.
std::span<const Way> ways_of(engine::Kind kind) noexcept;

// A table with a value for each way, such as its cost or its start function. A row may hold the
// value of several kinds. A table compiles only if each entry of kWays has exactly one row, and
// every row belongs to an entry. A value.
template <typename Value>
class WayTable {
 public:
  struct Row {
    engine::KindSet kinds;
    Algorithm algorithm;
    Value value;
  };
  consteval WayTable(std::initializer_list<Row> rows) {
    for (const Row& row : rows) {
      for (const engine::KindRow& known : engine::kKinds) {
        if (row.kinds.has(known.kind)) put(known.kind, row.algorithm, row.value);
      }
    }
    for (const Way& way : kWays) {
      if (!has_[place_of(way.kind, way.algorithm)]) throw "a way has no row";
    }
  }
  // Returns the value of an existing way.
  constexpr const Value& of(engine::Kind kind, Algorithm algorithm) const noexcept {
    return values_[place_of(kind, algorithm)];
  }

 private:
  static constexpr std::size_t place_of(engine::Kind kind, Algorithm algorithm) noexcept {
    return static_cast<std::size_t>(kind) * kAlgorithmCount + static_cast<std::size_t>(algorithm);
  }
  consteval void put(engine::Kind kind, Algorithm algorithm, const Value& value) {
    const bool is_way = std::ranges::any_of(
        kWays, [&](const Way& way) { return way.kind == kind && way.algorithm == algorithm; });
    if (!is_way) throw "a row is of no way";
    const std::size_t place = place_of(kind, algorithm);
    if (has_[place]) throw "a way has two rows";
    has_[place] = true;
    values_[place] = value;
  }

  std::array<Value, engine::kKindCount * kAlgorithmCount> values_{};
  std::array<bool, engine::kKindCount * kAlgorithmCount> has_{};
};

// Returns whether the order of additions can affect the result.
bool order_matters(const engine::Signature& signature) noexcept;

// The algorithms that the user forces. A kind without an entry uses the algorithm that the cost
// model chooses. A value.
class Choices {
 public:
  std::optional<Algorithm> of(engine::Kind kind) const noexcept {
    return chosen_[static_cast<std::size_t>(kind)];
  }
  void set(engine::Kind kind, Algorithm algorithm) noexcept {
    chosen_[static_cast<std::size_t>(kind)] = algorithm;
  }

  // Parses `text`, the value of HOCKET_ALGORITHM: entries separated by commas. An entry "NAME"
  // applies to all collectives that have an algorithm of this name. An entry "COLLECTIVE=NAME"
  // applies to one collective. Later entries override earlier ones. Throws InvalidArgument, with
  // the list of valid names, if the name is unknown or the collective has no such algorithm.
  static Choices parse(std::string_view text);

 private:
  std::array<std::optional<Algorithm>, engine::kKindCount> chosen_{};
};

}  // namespace hocket::algorithm
