#include "calls/compose/algorithm_provider.h"

namespace hocket::compose {

// It runs wherever messages do.
std::optional<Engine> AlgorithmProvider::probe(const Machine&) const { return std::nullopt; }

}  // namespace hocket::compose
