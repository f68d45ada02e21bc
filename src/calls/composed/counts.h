// The exchange of one count with each rank, before a call of parts of different sizes.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "calls/call/request.h"
#include "hocket/types.h"

namespace hocket::composed {

// Returns the request of an exchange: mine[r] goes to rank r, and theirs[r] comes from it. No rank
// leaves the call before all have entered it.
call::Request exchange_of_counts(const std::vector<std::size_t>& mine,
                                 std::vector<std::size_t>& theirs,
                                 std::optional<Duration> deadline);

}  // namespace hocket::composed
