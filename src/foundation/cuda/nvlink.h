// How two GPUs of a host are linked.
#pragma once

#include <span>
#include <string>

namespace hocket::cuda {

// Whether NVLink joins a GPU with all of some, told by where they sit ("0000:1b:00.0"), as NVIDIA's
// management library says; it knows GPUs, too, that CUDA_VISIBLE_DEVICES hides from this process. A
// GPU is joined with itself. Empty: yes; else why not, or why nothing is known.
std::string why_no_nvlink(const std::string& bus_id, std::span<const std::string> others);

}  // namespace hocket::cuda
