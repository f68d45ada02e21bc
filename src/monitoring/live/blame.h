// Finds the rank for which a rank finally waits, over all groups of a job, seen from outside.
#pragma once

#include <functional>
#include <vector>

#include "monitoring/live/sampler.h"

namespace hocket::live {

// Places of the members that have not come to the call that `place` is in.
std::vector<int> missing_from(const Glance& glance, int place);

// The place of the rank that holds up the one at `place`, and waits for no other itself. In a
// circle of ranks that wait for each other, it is the lowest one. -1: `place` waits for no rank, or
// none can be named. `stands_still` tells whether the process at a place is stopped.
int blamed_by(const Glance& glance, int place, const std::function<bool(int)>& stands_still);

}  // namespace hocket::live
