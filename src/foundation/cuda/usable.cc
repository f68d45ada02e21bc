#include "foundation/cuda/usable.h"

#include <algorithm>

namespace hocket::cuda {

bool has_library(const Machine& machine, std::string_view name) {
  const auto found = std::ranges::find(machine.libraries, name, &Software::name);
  return found != machine.libraries.end() && found->found() &&
         found->version.find("no usable GPU") == std::string::npos;
}

std::string why_no_gpu(const Machine& machine) {
  return has_library(machine, "CUDA driver") ? "" : "there is no GPU, or no driver for it";
}

}  // namespace hocket::cuda
