// What calls on GPUs need of the process that they are made in, beside what every call needs.
#pragma once

#include <memory>

#include "calls/call/attended.h"
#include "calls/call/surroundings.h"
#include "calls/device/blocks.h"
#include "calls/device/libraries.h"
#include "engine/provider.h"

namespace hocket::device {

// Any thread.
class DeviceSurroundings : public call::Surroundings {
 public:
  // How many ranks the job has; whether they are threads of one process.
  virtual int size() const noexcept = 0;
  virtual bool threads() const noexcept = 0;
  // Those that the job has chosen, the best first.
  virtual const engine::ProviderList& providers() const noexcept = 0;
  // What drives GPUs, looked for when it is first asked for.
  virtual DeviceLibraries& device_libraries() noexcept = 0;
  // Symmetric memory of GPUs, of all communicators.
  virtual DeviceBlocks& device_blocks() noexcept = 0;
  // The GPU of a rank that does not say.
  virtual int default_device() = 0;
  // Has the progress thread look at it for as long as it lives; has it look now.
  virtual void attend(std::weak_ptr<call::Attended> attended) = 0;
  virtual void look_again() noexcept = 0;
  // Has `core` end its calls on GPUs before the process does. To be called when the driver has
  // been started, whose own end comes earlier otherwise.
  virtual void finish_at_exit(std::weak_ptr<call::Core> core) = 0;
};

}  // namespace hocket::device
