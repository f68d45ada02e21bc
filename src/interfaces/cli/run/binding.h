// The binding of ranks to processors.
#pragma once

#include <sched.h>

#include <vector>

#include "interfaces/cli/run/environment_block.h"

namespace hocket::cli {

enum class Binding {
  kNone,  // ranks run where this process may
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

// Distinct cores among them.
int count_cores(const std::vector<Processor>& processors);

// The processors of each of `ranks` ranks. The sets are disjoint, and together have all processors.
// They consist of whole cores if there are at least as many cores as ranks. Empty if there are
// fewer processors than ranks. Pure.
std::vector<cpu_set_t> share_out(const std::vector<Processor>& processors, int ranks);

// The processors of each rank for `binding`; empty: no binding. Throws InvalidArgument for kCore
// without enough cores.
std::vector<cpu_set_t> bind_ranks(Binding binding,
                                  const std::vector<Processor>& processors,
                                  int ranks,
                                  const EnvironmentBlock& environment);

}  // namespace hocket::cli
