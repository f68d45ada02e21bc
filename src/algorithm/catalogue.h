// Which algorithms there are for each collective, and what they are called.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "engine/call.h"

namespace hocket::algorithm {

// Ways; one name may stand for like ways of several collectives. See algorithms.h.
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
// "recursive_doubling".
std::string_view name_of(Algorithm algorithm) noexcept;

// A way to do a collective. `ordered`: reductions are made in ascending order of the ranks,
// whatever their elements are.
struct Way {
  engine::Kind kind;
  Algorithm algorithm;
  bool ordered = true;
};
// All ways of one kind, at least one for what engines carry; none for the rest.
std::span<const Way> ways_of(engine::Kind kind) noexcept;

// Whether the order in which elements are added up can show in the result.
bool order_matters(const engine::Signature& signature) noexcept;

// Which algorithms are to be used, whatever they cost. A value; absent: the cost model's choice.
class Choices {
 public:
  std::optional<Algorithm> of(engine::Kind kind) const noexcept {
    return chosen_[static_cast<std::size_t>(kind)];
  }
  void set(engine::Kind kind, Algorithm algorithm) noexcept {
    chosen_[static_cast<std::size_t>(kind)] = algorithm;
  }

  // Of HOCKET_ALGORITHM, which is `text`: names with commas, each for all collectives that have it,
  // or "COLLECTIVE=NAME" for one; later ones win. Throws InvalidArgument for a name that there is
  // not, or not for that collective, and lists those that there are.
  static Choices parse(std::string_view text);

 private:
  std::array<std::optional<Algorithm>, engine::kKindCount> chosen_{};
};

}  // namespace hocket::algorithm
