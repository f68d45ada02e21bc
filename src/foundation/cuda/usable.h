// Tells tools such as `hocket doctor` whether a machine has usable GPUs.
#pragma once

#include <string>
#include <string_view>

#include "hocket/machine.h"

namespace hocket::cuda {

// Returns whether `machine` has a library of this name, and nothing is known that prevents its use.
bool has_library(const Machine& machine, std::string_view name);
// Returns "" if the machine has usable GPUs, else the reason.
std::string why_no_gpu(const Machine& machine);

}  // namespace hocket::cuda
