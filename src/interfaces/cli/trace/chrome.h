// A trace in the format of Chrome's trace viewer, which Perfetto (https://ui.perfetto.dev) reads.
#pragma once

#include <ostream>

#include "hocket/trace.h"

namespace hocket::cli {

// Writes each rank as a process with one line for each communicator. Messages may overlap, so they
// get separate lines. Format: "Trace Event Format", JSON object form.
void write_chrome_trace(const JobTrace& trace, std::ostream& out);

}  // namespace hocket::cli
