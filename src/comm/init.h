// From a process that was just started to a world, with engines out of a list that is handed in.
#pragma once

#include "comm/job_engines.h"
#include "hocket/bootstrap.h"
#include "hocket/group.h"

namespace hocket::comm {

// As hocket::init.
World init(const InitOptions& options, const MakeProviders& make);
World init(Bootstrap& bootstrap, const InitOptions& options, const MakeProviders& make);

}  // namespace hocket::comm
