// The process-wide hook behind hocket::set_place_teller.
#pragma once

#include <cstdint>
#include <string>

namespace hocket::base {

using PlaceTeller = std::string (*)(std::uint64_t thread);
// Returns the registered function, or null.
PlaceTeller place_teller() noexcept;

}  // namespace hocket::base
