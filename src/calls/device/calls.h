// All calls of a communicator on arrays in GPUs' memory, by subject.
#pragma once

#include "calls/device/collectives.h"
#include "calls/device/launcher.h"
#include "calls/device/memory.h"
#include "calls/device/messages.h"
#include "calls/device/session.h"

namespace hocket::device {

// A resource, one for each communicator that has made a call on GPUs. The communicator's turn
// guards it.
struct DeviceCalls {
  DeviceCalls(call::Core& owner, DeviceJobContext& job)
      : session(owner, job),
        launcher(session),
        collectives(session, launcher),
        messages(session, launcher),
        memory(session) {}

  DeviceSession session;
  DeviceLauncher launcher;
  DeviceCollectives collectives;
  DeviceMessages messages;
  DeviceMemory memory;
};

}  // namespace hocket::device
