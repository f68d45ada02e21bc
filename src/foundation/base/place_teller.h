// Gives access to the function of hocket::set_place_teller, which tells where in its program a
// thread is. A process has one such function.
#pragma once

#include <cstdint>
#include <string>

namespace hocket::base {

using PlaceTeller = std::string (*)(std::uint64_t thread);
// Returns the registered function, or null.
PlaceTeller place_teller() noexcept;

}  // namespace hocket::base
