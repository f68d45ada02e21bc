// A hash of the constants by which ranks choose algorithms. All ranks must have equal constants.
#pragma once

#include <cstdint>

#include "engine/provider.h"

namespace hocket::joining {

// Equal if the engines and algorithms of two builds choose alike. It covers the constants, and the
// results of this build's arithmetic with them.
std::uint64_t tuning_hash(const engine::ProviderList& providers);

}  // namespace hocket::joining
