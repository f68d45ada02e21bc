// The algorithms by which collectives travel as messages, by name; see docs/algorithms.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hocket/abi.h"

namespace hocket {

// Those that there are for a collective, "all_reduce" and so on, for HOCKET_ALGORITHM; none where
// there is no such collective.
std::vector<std::string> algorithm_names(std::string_view collective);

}  // namespace hocket
