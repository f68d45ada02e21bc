#include "hocket/bootstrap.h"

#include <algorithm>

namespace hocket {
namespace {

// Folds two numbers. Sums are computed as unsigned numbers, so that overflow is defined: they wrap
// around.
std::int64_t fold_two(std::int64_t a, std::int64_t b, Bootstrap::Fold fold) {
  switch (fold) {
    case Bootstrap::Fold::kSum:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) +
                                       static_cast<std::uint64_t>(b));
    case Bootstrap::Fold::kMin:
      return std::min(a, b);
    case Bootstrap::Fold::kMax:
      return std::max(a, b);
  }
  return a;
}

}  // namespace

void Bootstrap::fold_into(std::span<std::int64_t> values,
                          std::span<const std::int64_t> theirs,
                          Fold fold) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = fold_two(values[i], theirs[i], fold);
}

}  // namespace hocket
