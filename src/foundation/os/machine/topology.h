// Processors, caches and memory nodes, and what of them this process may use.
#pragma once

#include <string>

#include "foundation/os/machine/processor_set.h"
#include "hocket/machine.h"

namespace hocket::os {

Processors find_processors();
// The same for a process that may use `allowed`; /proc and /sys are looked for in `root`.
Processors find_processors(const std::string& root, const ProcessorSet& allowed);
Memory find_memory();

}  // namespace hocket::os
