// The binding of ranks to processors.
#pragma once

#include <vector>

#include "interfaces/cli/cpu_mask.h"
#include "interfaces/cli/run/environment_block.h"

namespace hocket::cli {

enum class Binding {
  kNone,  // ranks may use all processors of this process
  kCore,  // each rank has its own cores; an error if there are fewer cores than ranks
  kAuto,  // kCore if there are enough cores and the user has set nothing else; else kNone
};

// A processor (hardware thread) that this process may use, and the core that it belongs to.
struct Processor {
  int number = 0;
  int package = 0;
  int core = 0;  // in its package
};

// The processors in this process's affinity mask, the threads of a core side by side.
std::vector<Processor> allowed_processors();

// Returns the number of distinct cores.
int count_cores(const std::vector<Processor>& processors);

// Divides the processors among `ranks` ranks, into disjoint sets. They consist of whole cores if
// there are at least as many cores as ranks. Empty if there are fewer processors than ranks. Pure.
std::vector<CpuMask> share_out(const std::vector<Processor>& processors, int ranks);

// The processors of each rank for `binding`; empty: no binding. Throws InvalidArgument for kCore
// without enough cores.
std::vector<CpuMask> bind_ranks(Binding binding,
                                const std::vector<Processor>& processors,
                                int ranks,
                                const EnvironmentBlock& environment);

}  // namespace hocket::cli
