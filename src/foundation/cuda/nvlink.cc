#include "foundation/cuda/nvlink.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace hocket::cuda {
namespace {

// The part of NVML's interface (nvml.h) that this file uses.
using NvmlDevice = void*;
constexpr int kSuccess = 0;
constexpr int kNvlinkCapability = 2;
constexpr int kStatusOk = 0;

// A resource: NVIDIA's management library, initialized. The destructor shuts it down, but does not
// unload it.
class Nvml {
 public:
  Nvml() {
    constexpr const char* kLibrary = "libnvidia-ml.so.1";
    void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
      why_not_ = fmt::format("there is no {}", kLibrary);
      return;
    }
    const auto find = [&](const char* name, auto& function) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (function == nullptr) why_not_ = fmt::format("{} has no {}", kLibrary, name);
    };
    int (*start)() = nullptr;
    find("nvmlInit_v2", start);
    find("nvmlShutdown", shutdown_);
    find("nvmlDeviceGetHandleByPciBusId_v2", get_device_);
    find("nvmlDeviceGetP2PStatus", get_status_);
    if (!why_not_.empty()) return;
    if (const int code = start(); code != kSuccess) {
      why_not_ = fmt::format("nvmlInit failed ({})", code);
    } else {
      started_ = true;
    }
  }
  ~Nvml() {
    if (started_) shutdown_();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string why_no_nvlink(const std::string& bus_id, const std::string& other_bus_id) const {
    if (!why_not_.empty()) return why_not_;
    NvmlDevice one = nullptr, other = nullptr;
    if (const int code = get_device_(bus_id.c_str(), &one); code != kSuccess) {
      return fmt::format("NVML does not know the GPU at {} ({})", bus_id, code);
    }
    if (const int code = get_device_(other_bus_id.c_str(), &other); code != kSuccess) {
      return fmt::format("NVML does not know the GPU at {} ({})", other_bus_id, code);
    }
    int status = -1;
    const int code = get_status_(one, other, kNvlinkCapability, &status);
    if (code == kSuccess && status == kStatusOk) return "";
    return fmt::format("NVML knows of no NVLink between the GPUs at {} and {} ({}, status {})",
                       bus_id,
                       other_bus_id,
                       code,
                       status);
  }

 private:
  std::string why_not_;
  bool started_ = false;
  int (*shutdown_)() = nullptr;
  int (*get_device_)(const char* bus_id, NvmlDevice*) = nullptr;
  int (*get_status_)(NvmlDevice, NvmlDevice, int capability, int* status) = nullptr;
};

}  // namespace

// Caches the result for each pair of GPUs, because links do not change and the library takes long
// to initialize.
std::string why_no_nvlink(const std::string& bus_id, std::span<const std::string> others) {
  static std::mutex mutex;
  static auto* known = new std::map<std::pair<std::string, std::string>, std::string>;
  const std::lock_guard lock(mutex);
  std::optional<Nvml> nvml;
  for (const std::string& other : others) {
    if (other == bus_id) continue;
    const std::pair pair(bus_id, other);
    auto found = known->find(pair);
    if (found == known->end()) {
      if (!nvml) nvml.emplace();
      found = known->emplace(pair, nvml->why_no_nvlink(bus_id, other)).first;
    }
    if (!found->second.empty()) return found->second;
  }
  return "";
}

}  // namespace hocket::cuda
