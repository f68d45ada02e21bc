// A trace in the format of Chrome's trace viewer, which Perfetto (https://ui.perfetto.dev) reads.
#pragma once

#include <ostream>

#include "hocket/trace.h"

namespace hocket::cli {

// One process a rank, one line a communicator in it; messages, which may overlap, on lines of their
// own. Format: "Trace Event Format", JSON object form.
void write_chrome_trace(const JobTrace& trace, std::ostream& out);

}  // namespace hocket::cli
