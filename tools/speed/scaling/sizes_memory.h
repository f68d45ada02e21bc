// Addresses without memory, for simulations in which nothing is ever read or written.
#pragma once

#include <cstddef>

namespace hocket::scaling {

// Addresses of the ranks' arrays, and of the scratch memory of algorithms. An access crashes. Each
// range is large enough for any call of any size, so all ranks may have the same.
std::byte* input_addresses();
std::byte* output_addresses();
std::byte* scratch_addresses();

}  // namespace hocket::scaling
