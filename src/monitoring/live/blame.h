// Whom a rank waits for in the end, over all groups of a job, as it was seen from outside.
#pragma once

#include <functional>
#include <vector>

#include "monitoring/live/sampler.h"

namespace hocket::live {

// Places of the members that have not come to the call that `place` is in.
std::vector<int> missing_from(const Glance& glance, int place);

// The place of the rank that holds up the one at `place`, and waits for nobody itself; in a circle
// of ranks that wait for each other, the lowest of them. -1: `place` waits for nobody, or nobody
// can be named. `stands_still`: of a place, whether its process is stopped.
int blamed_by(const Glance& glance, int place, const std::function<bool(int)>& stands_still);

}  // namespace hocket::live
