// Newcomers to a running job, from both sides; see hocket/admission.h.
#pragma once

#include <string>

#include "calls/joining/init.h"
#include "hocket/admission.h"

namespace hocket::joining {

// Does the work of hocket::admit.
World admit(Communicator& members, const AdmitOptions& options, const world::MakeProviders& make);

// The newcomer's side: waits at `door`, an address or a job's name, until it is admitted. Throws
// RendezvousError at the options' timeout.
World join_running(const InitOptions& options, StartSettings settings, const std::string& door);

}  // namespace hocket::joining
