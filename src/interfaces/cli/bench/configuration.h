// The last section of a benchmark's page: its command, machine, libraries and method.
#pragma once

#include <string>

#include "interfaces/cli/bench/report.h"

namespace hocket::cli::bench {

std::string configuration_of(const Findings& findings);

}  // namespace hocket::cli::bench
