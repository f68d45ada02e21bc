// Asks how GPUs of a host are linked.
#pragma once

#include <span>
#include <string>

namespace hocket::cuda {

// Returns "" if NVLink joins the GPU `bus_id` with all of `others`. Otherwise returns why not, or
// why it is unknown. GPUs are given by PCI addresses ("0000:1b:00.0"). NVIDIA's management library
// (NVML) gives the answer, also for GPUs that CUDA_VISIBLE_DEVICES hides. A GPU counts as joined
// with itself.
std::string why_no_nvlink(const std::string& bus_id, std::span<const std::string> others);

}  // namespace hocket::cuda
