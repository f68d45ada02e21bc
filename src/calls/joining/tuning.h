// What choices are made by that all ranks must make alike.
#pragma once

#include <cstdint>

#include "engine/provider.h"

namespace hocket::joining {

// Equal where the engines and algorithms of two builds choose alike. Made of the constants that
// they go by, and of what this build's arithmetic makes of them.
std::uint64_t tuning_hash(const engine::ProviderList& providers);

}  // namespace hocket::joining
