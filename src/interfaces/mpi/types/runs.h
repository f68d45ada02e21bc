// The runs of bytes that elements of a datatype have in memory or in a file.
#pragma once

#include <cstdint>
#include <functional>

#include "interfaces/mpi/types/datatype.h"

namespace hocket::mpi {

// Gets the place and the length of a run; false ends the walk.
using Run = std::function<bool(std::int64_t place, std::int64_t length)>;

// Walks over the runs of a layout in the order of its packed bytes. Returns false if `run` did.
bool each_run_of_layout(const Layout& layout, const Run& run);

// Does the same for the packed bytes from `begin` to `end` of elements of a type, the first of
// which is at `base`. Runs that touch are merged. The caller has seen that all places fit into 64
// bits.
void each_run(
    const Datatype& type, std::int64_t base, std::int64_t begin, std::int64_t end, const Run& run);

}  // namespace hocket::mpi
