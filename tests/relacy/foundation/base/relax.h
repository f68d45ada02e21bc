// In place of src/foundation/base/relax.h: a loop that waits gives others their turn.
#pragma once

#include "simulator.h"

namespace hocket::base {

inline void relax() noexcept { relacy::yield(); }

}  // namespace hocket::base
