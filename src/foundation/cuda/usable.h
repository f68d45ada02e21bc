// Whether a machine has GPUs that can be used, for tools.
#pragma once

#include <string>
#include <string_view>

#include "hocket/machine.h"

namespace hocket::cuda {

// Whether a library of this name was found, and says nothing against its use.
bool has_library(const Machine& machine, std::string_view name);
// Empty: it has.
std::string why_no_gpu(const Machine& machine);

}  // namespace hocket::cuda
