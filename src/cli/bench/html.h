// What a benchmark found, as one page that needs nothing else: plots, tables, configuration.
#pragma once

#include <string>

#include "cli/bench/report.h"

namespace hocket::cli::bench {

std::string to_html(const Findings& findings);

}  // namespace hocket::cli::bench
