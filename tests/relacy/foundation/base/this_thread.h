// In place of src/foundation/base/this_thread.h: threads of the simulator are fibers of one thread.
#pragma once

#include <cstdint>

#include "simulator.h"

namespace hocket::base {

inline std::uintptr_t this_thread() noexcept { return relacy::this_thread(); }

}  // namespace hocket::base
