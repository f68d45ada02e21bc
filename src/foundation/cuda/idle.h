// Releases memory that a GPU may still access.
#pragma once

#include <memory>

#include "foundation/base/deadline.h"
#include "foundation/cuda/context.h"

namespace hocket::cuda {

// Releases `memory` as soon as all work of the device has ended. Waits for this until the deadline.
// Returns false if the deadline passed; the memory is then released later, when the work ends. The
// driver's wait has no time limit. So a separate thread waits, and may outlive this call. If the
// system refuses the thread, the caller itself waits, without a time limit.
bool release_when_idle(std::shared_ptr<const DeviceContext> device,
                       std::shared_ptr<void> memory,
                       base::Deadline deadline) noexcept;

}  // namespace hocket::cuda
