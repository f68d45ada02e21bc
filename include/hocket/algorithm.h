// The names of the algorithms that carry collectives as messages; see docs/algorithms.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hocket/abi.h"

namespace hocket {

// Lists the algorithms of one collective, as HOCKET_ALGORITHM takes them. Any thread may call it.
// @param collective The name of the collective, such as "all_reduce".
// @return The names of its algorithms. Empty if there is no such collective.
std::vector<std::string> algorithm_names(std::string_view collective);

}  // namespace hocket
