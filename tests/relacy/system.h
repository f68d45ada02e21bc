// Features of the simulated system.
#pragma once

namespace hocket::relacy {

// True if membarrier works. Set by the program that is simulated.
extern bool has_heavy_fence;

}  // namespace hocket::relacy
