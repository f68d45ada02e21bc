// What a benchmark was: its command, machine, libraries and method, as the last section of its
// page.
#pragma once

#include <string>

#include "cli/bench/report.h"

namespace hocket::cli::bench {

std::string configuration_of(const Findings& findings);

}  // namespace hocket::cli::bench
