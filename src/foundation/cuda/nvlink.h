// The link between GPUs of a host.
#pragma once

#include <span>
#include <string>

namespace hocket::cuda {

// Returns "" if NVLink joins a GPU with all of `others`, else the reason, or why it is unknown.
// GPUs are given by PCI addresses ("0000:1b:00.0"). NVIDIA's management library gives the answer,
// also for GPUs that CUDA_VISIBLE_DEVICES hides. A GPU is joined with itself.
std::string why_no_nvlink(const std::string& bus_id, std::span<const std::string> others);

}  // namespace hocket::cuda
