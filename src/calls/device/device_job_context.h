// The services of the process that only calls on GPUs use.
#pragma once

#include <memory>

#include "calls/call/job_context.h"
#include "calls/call/periodic_task.h"
#include "calls/device/blocks.h"
#include "calls/device/libraries.h"
#include "engine/provider.h"

namespace hocket::device {

// An interface. Any thread may use it.
class DeviceJobContext : public call::JobContext {
 public:
  // Return the number of ranks of the job, and whether they are threads of one process.
  virtual int size() const noexcept = 0;
  virtual bool threads() const noexcept = 0;
  // Returns the providers that the job has chosen, best first.
  virtual const engine::ProviderList& providers() const noexcept = 0;
  // Returns the libraries for GPUs, which are loaded at their first use.
  virtual DeviceLibraries& device_libraries() noexcept = 0;
  // Returns the symmetric memory of GPUs of all communicators.
  virtual DeviceBlocks& device_blocks() noexcept = 0;
  // Returns the GPU of a rank that does not specify one.
  virtual int default_device() = 0;
  // Register an object with the progress thread for its lifetime, and make the thread look now.
  virtual void add_periodic_task(std::weak_ptr<call::PeriodicTask> task) = 0;
  virtual void look_again() noexcept = 0;
  // Makes `core` end its calls on GPUs before the process exits. It must be called after the driver
  // has started, because exit handlers run in reverse order.
  virtual void finish_at_exit(std::weak_ptr<call::Core> core) = 0;
};

}  // namespace hocket::device
