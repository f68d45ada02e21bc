// `hocket trace` reads audits by these functions. They find the first difference between two runs,
// and the first number of a run that is not finite.
#pragma once

#include <string>

namespace hocket::cli {

// Prints the first difference. Returns the exit code: 0 if the runs are equal, 1 if they differ, 2
// if they cannot be compared.
int show_difference(const std::string& first, const std::string& second);
// Prints a line if the job's audit has a number that is not finite.
void print_non_finite(const std::string& folder);

}  // namespace hocket::cli
