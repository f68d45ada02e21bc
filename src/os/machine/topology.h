// Processors, caches and memory nodes, and what of them this process may use.
#pragma once

#include "hocket/machine.h"

namespace hocket::os {

Processors find_processors();
Memory find_memory();

}  // namespace hocket::os
