// Finds the rank at the end of a chain of waits, over all groups of a job that is seen from
// outside.
#pragma once

#include <functional>
#include <vector>

#include "monitoring/live/sampler.h"

namespace hocket::live {

// Returns the places of the members that have not begun the call of the rank at `place`.
std::vector<int> missing_from(const Glance& glance, int place);

// Returns the place of the rank that holds up the rank at `place`, and waits for no other rank
// itself. In a circle of ranks that wait for each other, returns the lowest place.
// Returns -1 if the rank at `place` waits for no rank, or if that rank is unknown. `stands_still`
// tells whether the process at a place is stopped.
int blamed_by(const Glance& glance, int place, const std::function<bool(int)>& stands_still);

}  // namespace hocket::live
