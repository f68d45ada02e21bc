// Addresses without memory, for simulations that never read or write their arrays.
#pragma once

#include <cstddef>

namespace hocket::scaling {

// Addresses of the ranks' input and output arrays, and of the scratch memory of algorithms. An
// access to them crashes. Each range is large enough for a call of any size. All ranks use the same
// addresses, because nothing is stored there.
std::byte* input_addresses();
std::byte* output_addresses();
std::byte* scratch_addresses();

}  // namespace hocket::scaling
