// Finds the processors, caches and memory nodes of the machine, and the part of them that this
// process may use.
#pragma once

#include <string>

#include "foundation/os/machine/processor_set.h"
#include "hocket/machine.h"

namespace hocket::os {

// Returns the processors and caches that this process may use.
Processors find_processors();
// Returns the processors and caches of a process that may use `allowed`. `root` is the folder that
// contains /proc and /sys; tests pass another one.
Processors find_processors(const std::string& root, const ProcessorSet& allowed);
Memory find_memory();

}  // namespace hocket::os
