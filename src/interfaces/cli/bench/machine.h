// What a benchmark ran on: facts of the machine that its figures depend on.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hocket::cli::bench {

// Names and values, in the order in which they are shown; what cannot be read is left out.
using Facts = std::vector<std::pair<std::string, std::string>>;

Facts machine_facts();

// Now, as "2026-01-31T12:34:56Z".
std::string timestamp();

}  // namespace hocket::cli::bench
