// The release of memory that a GPU may still access.
#pragma once

#include <memory>

#include "foundation/base/deadline.h"
#include "foundation/cuda/context.h"

namespace hocket::cuda {

// Releases `memory` when all work of the device has ended, and waits for that until the deadline.
// Returns false if the deadline passed; the memory is then released when the work ends. The
// driver's wait has no limit, so a separate thread makes it, which may outlive the call.
bool release_when_idle(std::shared_ptr<const DeviceContext> device,
                       std::shared_ptr<void> memory,
                       base::Deadline deadline) noexcept;

}  // namespace hocket::cuda
