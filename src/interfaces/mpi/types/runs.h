// The runs of bytes that elements of a datatype have in memory or in a file.
#pragma once

#include <cstdint>
#include <functional>

#include "interfaces/mpi/types/datatype.h"

namespace hocket::mpi {

// Called with the offset and the length of a run. Returning false ends the walk.
using Run = std::function<bool(std::int64_t place, std::int64_t length)>;

// Walks over the runs of a layout in the order of its packed bytes. Returns false if `run` returned
// false.
bool each_run_of_layout(const Layout& layout, const Run& run);

// Walks over the runs of the packed bytes from `begin` to `end` of elements of a type. The first
// element is at `base`. Runs that touch are merged. The caller has checked that all places fit into
// 64 bits.
void each_run(
    const Datatype& type, std::int64_t base, std::int64_t begin, std::int64_t end, const Run& run);

}  // namespace hocket::mpi
