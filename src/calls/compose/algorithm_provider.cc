#include "calls/compose/algorithm_provider.h"

namespace hocket::compose {

// Needs nothing of the machine: the engine runs on any messages.
std::optional<Engine> AlgorithmProvider::probe(const Machine&) const { return std::nullopt; }

}  // namespace hocket::compose
