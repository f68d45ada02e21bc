// The processors, caches and memory nodes of the machine, and the part that this process may use.
#pragma once

#include <string>

#include "foundation/os/machine/processor_set.h"
#include "hocket/machine.h"

namespace hocket::os {

Processors find_processors();
// Does the same for a process that may use `allowed`. `root` is the folder that contains /proc and
// /sys.
Processors find_processors(const std::string& root, const ProcessorSet& allowed);
Memory find_memory();

}  // namespace hocket::os
