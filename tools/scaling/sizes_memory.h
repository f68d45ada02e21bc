// Addresses without memory, for simulations in which nothing is ever read or written.
#pragma once

#include <cstddef>

namespace hocket::scaling {

// Whoever touches them crashes. The arrays that ranks are given, and what algorithms take beside,
// each with room for as much as any call of any size needs: all ranks may have the same.
std::byte* input_addresses();
std::byte* output_addresses();
std::byte* scratch_addresses();

}  // namespace hocket::scaling
