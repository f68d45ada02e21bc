// What the simulated system has.
#pragma once

namespace hocket::relacy {

// Whether membarrier works. Of the program that is simulated.
extern bool has_heavy_fence;

}  // namespace hocket::relacy
