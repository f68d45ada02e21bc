// Which processors each rank runs on.
#pragma once

#include <sched.h>

#include <vector>

#include "interfaces/cli/run/environment_block.h"

namespace hocket::cli {

enum class Binding {
  kNone,  // ranks run where this process may
  kCore,  // each rank on cores of its own; an error where there are fewer than ranks
  kAuto,  // the same where there are enough cores and the user has no other wish; else kNone
};

// A processor (hardware thread) that this process may use, and the core that it belongs to.
struct Processor {
  int number = 0;
  int package = 0;
  int core = 0;  // in its package
};

// Those in this process's affinity mask, the threads of a core side by side.
std::vector<Processor> allowed_processors();

// Distinct cores among them.
int count_cores(const std::vector<Processor>& processors);

// The processors of each of `ranks` ranks: disjoint, together all there are, whole cores where
// there are as many cores as ranks. Empty where there are fewer processors than ranks. Pure.
std::vector<cpu_set_t> share_out(const std::vector<Processor>& processors, int ranks);

// What `binding` means here; empty: no binding. Throws InvalidArgument for kCore without enough
// cores.
std::vector<cpu_set_t> bind_ranks(Binding binding,
                                  const std::vector<Processor>& processors,
                                  int ranks,
                                  const EnvironmentBlock& environment);

}  // namespace hocket::cli
