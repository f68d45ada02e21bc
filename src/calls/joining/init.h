// From a process that was just started to a world, with engines out of a list that is handed in.
#pragma once

#include "calls/world/job_engines.h"
#include "hocket/bootstrap.h"
#include "hocket/group.h"

namespace hocket::joining {

// As hocket::init.
World init(const InitOptions& options, const world::MakeProviders& make);
World init(Bootstrap& bootstrap, const InitOptions& options, const world::MakeProviders& make);

}  // namespace hocket::joining
