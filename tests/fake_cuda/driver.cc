// Devices, contexts, and the table of functions.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>

#include "fake.h"
#include "faults.h"

using namespace hocket::cuda;

struct CUctx_st {
  int device = 0;
  bool gone = false;  // destroyed, by a reset
};

namespace fake {
namespace {

constexpr int kMaxDevices = 8;
CUctx_st contexts[kMaxDevices];
// Without a destructor: a thread's end, and the process's, may still ask the driver something.
struct Stack {
  static constexpr std::size_t kMost = 64;
  std::array<Context, kMost> contexts;
  std::size_t size;
  bool empty() const { return size == 0; }
  Context back() const { return contexts[size - 1]; }
  void pop_back() { --size; }
  void erase(Context context) {
    size = static_cast<std::size_t>(
        std::remove(contexts.begin(), contexts.begin() + size, context) - contexts.begin());
  }
  void push_back(Context context) {
    if (size == kMost) std::abort();
    contexts[size++] = context;
  }
};
thread_local constinit Stack stack{};

Result init(unsigned) {
  for (int i = 0; i < kMaxDevices; ++i) contexts[i].device = i;
  return device_count() > 0 ? Result::kSuccess : Result::kNoDevice;
}
Result driver_get_version(int* version) {
  *version = 12040;
  return Result::kSuccess;
}
Result get_error_name(Result, const char** text) {
  *text = "FAKE_ERROR";
  return Result::kSuccess;
}
Result get_error_string(Result, const char** text) {
  *text = "the fake driver says no";
  return Result::kSuccess;
}
Result device_get_count(int* count) {
  *count = device_count();
  return Result::kSuccess;
}
Result device_get(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < device_count() ? Result::kSuccess : Result::kInvalidDevice;
}
Result device_get_name(char* name, int length, int) {
  std::snprintf(name, static_cast<std::size_t>(length), "Fake GPU");
  return Result::kSuccess;
}
Result device_get_uuid(Uuid* uuid, int device) {
  std::memset(uuid->bytes, device + 1, sizeof(uuid->bytes));
  return Result::kSuccess;
}
// FAKE_CUDA_MPS=1: as under NVIDIA's MPS.
Result device_get_attribute(int* value, DeviceAttribute wanted, int) {
  const char* mps = std::getenv("FAKE_CUDA_MPS");
  *value = wanted == DeviceAttribute::kMps ? (mps == nullptr ? 0 : std::atoi(mps)) : 1;
  return Result::kSuccess;
}
Result device_get_pci_bus_id(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", device + 1);
  return Result::kSuccess;
}
Result primary_retain(Context* context, int device) {
  *context = &contexts[device];
  contexts[device].gone = false;
  return Result::kSuccess;
}
Result primary_release(int) { return Result::kSuccess; }
Result primary_reset(int device) {
  contexts[device].gone = true;
  stack.erase(&contexts[device]);
  return Result::kSuccess;
}
Result ctx_get_current(Context* context) {
  *context = stack.empty() ? nullptr : stack.back();
  return Result::kSuccess;
}
Result ctx_set_current(Context context) {
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  return Result::kSuccess;
}
Result ctx_push_current(Context context) {
  if (context != nullptr && context->gone) return Result::kInvalidContext;
  stack.push_back(context);
  return Result::kSuccess;
}
Result ctx_pop_current(Context* context) {
  if (stack.empty()) return Result::kInvalidContext;
  *context = stack.back();
  stack.pop_back();
  return Result::kSuccess;
}
Result ctx_get_device(int* device) {
  *device = current_device();
  return *device < 0 ? Result::kInvalidContext : Result::kSuccess;
}
Result ctx_synchronize() {
  if (current_device() < 0) return Result::kInvalidContext;
  quiesce();
  return Result::kSuccess;
}
Result unsupported() { return Result::kNotSupported; }

const std::unordered_map<std::string, void*>& table() {
  static const auto made = [] {
    std::unordered_map<std::string, void*> all;
    const auto add = [&all](const std::vector<Entry>& entries) {
      for (const Entry& e : entries) all[e.name] = breakable(e.name, e.function);
    };
    add(memory_functions());
    add(stream_functions());
    add(graph_functions());
    add(kernel_functions());
    add({entry("cuInit", init),
         entry("cuDriverGetVersion", driver_get_version),
         entry("cuGetErrorName", get_error_name),
         entry("cuGetErrorString", get_error_string),
         entry("cuDeviceGetCount", device_get_count),
         entry("cuDeviceGet", device_get),
         entry("cuDeviceGetName", device_get_name),
         entry("cuDeviceGetUuid", device_get_uuid),
         entry("cuDeviceGetAttribute", device_get_attribute),
         entry("cuDeviceGetPCIBusId", device_get_pci_bus_id),
         entry("cuDevicePrimaryCtxRetain", primary_retain),
         entry("cuDevicePrimaryCtxRelease", primary_release),
         entry("cuDevicePrimaryCtxReset", primary_reset),
         entry("cuCtxGetCurrent", ctx_get_current),
         entry("cuCtxSetCurrent", ctx_set_current),
         entry("cuCtxPushCurrent", ctx_push_current),
         entry("cuCtxPopCurrent", ctx_pop_current),
         entry("cuCtxGetDevice", ctx_get_device),
         entry("cuCtxSynchronize", ctx_synchronize)});
    for (const char* name : {"cuFuncGetAttribute", "cuOccupancyMaxActiveBlocksPerMultiprocessor"}) {
      all.emplace(name, reinterpret_cast<void*>(unsupported));
    }
    return all;
  }();
  return made;
}

}  // namespace

int device_count() {
  const char* wanted = std::getenv("FAKE_CUDA_DEVICES");
  return wanted == nullptr ? 4 : std::atoi(wanted);
}

// FAKE_CUDA_WITHOUT: functions that are not there, as in an older driver: "cuThis,cuThat".
bool is_left_out(std::string_view name) {
  const char* listed = std::getenv("FAKE_CUDA_WITHOUT");
  const std::string all = std::string(",") + (listed == nullptr ? "" : listed) + ",";
  return all.find("," + std::string(name) + ",") != std::string::npos;
}

int current_device() { return stack.empty() ? -1 : stack.back()->device; }

}  // namespace fake

extern "C" Result cuGetProcAddress_v2(
    const char* name, void** function, int, std::uint64_t, int* status) {
  const auto found = fake::table().find(name);
  fake::read_faults();
  const bool is_there = found != fake::table().end() && !fake::is_left_out(name);
  *function = is_there ? found->second : nullptr;
  if (status != nullptr) *status = *function == nullptr ? 1 : 0;
  return *function == nullptr ? Result::kNotFound : Result::kSuccess;
}

// Functions for programs that look for a driver without loading its table.
extern "C" Result cuDriverGetVersion(int* version) { return fake::driver_get_version(version); }
extern "C" Result cuInit(unsigned flags) { return fake::init(flags); }
extern "C" Result cuDeviceGetCount(int* count) { return fake::device_get_count(count); }
extern "C" Result cuDeviceGetName(char* name, int length, int device) {
  return fake::device_get_name(name, length, device);
}
