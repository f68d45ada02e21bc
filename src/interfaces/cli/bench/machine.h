// Facts of the machine on which a benchmark's figures depend.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hocket::cli::bench {

// Names and values, in the order in which they are shown. Facts that cannot be read are left out.
using Facts = std::vector<std::pair<std::string, std::string>>;

Facts machine_facts();

// Returns the current time, as "2026-01-31T12:34:56Z".
std::string timestamp();

}  // namespace hocket::cli::bench
