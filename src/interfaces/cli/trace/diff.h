// `hocket trace` on audits: the first difference of two runs, and the first numbers that are not
// finite.
#pragma once

#include <string>

namespace hocket::cli {

// Exit code: 0 if the runs are equal, 1 if they differ, 2 if they cannot be compared.
int show_difference(const std::string& first, const std::string& second);
// Prints a line if the job has an audit with such a number.
void print_non_finite(const std::string& folder);

}  // namespace hocket::cli
