// NVIDIA's management library as src/foundation/cuda/nvlink.cc needs it, for GPUs 1 to 9 at
// "0000:0N:00.0". NVLink joins the GPUs with odd numbers.
#include <cstdint>
#include <string_view>

namespace {

constexpr int kSuccess = 0, kNotFound = 6, kInvalidArgument = 2;
constexpr int kNvlink = 2;
constexpr int kOk = 0, kNotSupported = 5;
bool started = false;

std::uintptr_t number_of(const void* device) { return reinterpret_cast<std::uintptr_t>(device); }

}  // namespace

extern "C" {

int nvmlInit_v2() {
  started = true;
  return kSuccess;
}
int nvmlShutdown() {
  started = false;
  return kSuccess;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  const std::string_view id = bus_id;
  constexpr std::string_view kBefore = "0000:0", kAfter = ":00.0";
  const bool known = id.size() == kBefore.size() + 1 + kAfter.size() && id.starts_with(kBefore) &&
                     id.ends_with(kAfter) && id[kBefore.size()] > '0' && id[kBefore.size()] <= '9';
  if (!started || !known) return kNotFound;
  *device = reinterpret_cast<void*>(static_cast<std::uintptr_t>(id[kBefore.size()] - '0'));
  return kSuccess;
}
int nvmlDeviceGetP2PStatus(void* one, void* other, int capability, int* status) {
  if (!started || capability != kNvlink) return kInvalidArgument;
  *status = number_of(one) % 2 == 1 && number_of(other) % 2 == 1 ? kOk : kNotSupported;
  return kSuccess;
}

}  // extern "C"
