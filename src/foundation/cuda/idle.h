// Memory that a GPU may still be at work on.
#pragma once

#include <memory>

#include "foundation/base/deadline.h"
#include "foundation/cuda/context.h"

namespace hocket::cuda {

// Lets go of `memory` once all work of the device has ended, and waits for that until the deadline.
// False when it has passed: then the memory goes later, when the work ends. The driver's own wait
// has no end, so it is done in a thread that may stay behind.
bool release_when_idle(std::shared_ptr<const DeviceContext> device,
                       std::shared_ptr<void> memory,
                       base::Deadline deadline) noexcept;

}  // namespace hocket::cuda
