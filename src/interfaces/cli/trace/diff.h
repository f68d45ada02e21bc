// What `hocket trace` shows of audits: where two runs part, and where numbers ceased to be finite.
#pragma once

#include <string>

namespace hocket::cli {

// Exit code: 0 where the runs do not differ, 1 where they do, 2 where they cannot be compared.
int show_difference(const std::string& first, const std::string& second);
// A line, if the job has kept an audit that has such a number.
void print_non_finite(const std::string& folder);

}  // namespace hocket::cli
