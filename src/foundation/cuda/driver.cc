#include "foundation/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "hocket/error.h"

namespace hocket::cuda {
namespace {

// The version of the driver's interface that driver.h declares. The driver is asked for functions
// of this version.
constexpr int kInterface = 12000;
constexpr const char* kFile = "libcuda.so.1";

// Looks up the driver's functions by their names without version suffixes, as the CUDA runtime
// does. Remembers the first missing name.
class Finder {
 public:
  explicit Finder(void* library) {
    get_ = reinterpret_cast<Get*>(::dlsym(library, "cuGetProcAddress_v2"));
  }
  bool works() const noexcept { return get_ != nullptr; }

  template <typename F>
  void operator()(const char* name, F*& slot) {
    if (!look(name, slot) && missing_.empty()) missing_ = name;
  }
  // Looks up an optional function. Returns false if it is missing.
  template <typename F>
  bool look(const char* name, F*& slot) {
    void* found = nullptr;
    int status = 0;
    if (get_(name, &found, kInterface, 0, &status) != Result::kSuccess) return false;
    slot = reinterpret_cast<F*>(found);
    return found != nullptr;
  }
  const std::string& missing() const noexcept { return missing_; }

 private:
  using Get = Result(const char*, void**, int, std::uint64_t, int*);
  Get* get_ = nullptr;
  std::string missing_;
};

}  // namespace

FoundDriver Driver::find() {
  const std::shared_ptr<Driver> driver(new Driver);
  std::string why_not = driver->load();
  if (!why_not.empty()) return {nullptr, std::move(why_not)};
  return {driver, ""};
}

// The destructor does not unload the library, because the driver's own threads may outlive all
// users of this object.
Driver::~Driver() = default;

std::string Driver::load() {
  library_ = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library_ == nullptr) {
    return fmt::format("{} is not there: no NVIDIA driver is installed, or it is hidden from here",
                       kFile);
  }
  link_map* map = nullptr;
  if (::dlinfo(library_, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) path_ = map->l_name;
  std::string problem = fill();
  if (!problem.empty()) return problem;
  if (const Result result = init(0); result != Result::kSuccess) {
    return fmt::format("the driver does not start: {}", describe(result));
  }
  if (device_get_count(&devices_) != Result::kSuccess || devices_ == 0) {
    return "the driver sees no GPU; CUDA_VISIBLE_DEVICES may hide them";
  }
  return "";
}

std::string Driver::fill() {
  Finder find(library_);
  if (!find.works()) {
    return fmt::format("{} is older than CUDA 12.0, which hocket needs; update the driver", path_);
  }
  find("cuDriverGetVersion", driver_get_version);
  if (driver_get_version == nullptr || driver_get_version(&version_) != Result::kSuccess ||
      version_ < kInterface) {
    return fmt::format("the driver is for CUDA {}.{}, and hocket needs 12.0; update the driver",
                       version_ / 1000,
                       version_ % 1000 / 10);
  }
  find("cuInit", init);
  find("cuGetErrorName", get_error_name);
  find("cuGetErrorString", get_error_string);

  find("cuDeviceGetCount", device_get_count);
  find("cuDeviceGet", device_get);
  find("cuDeviceGetName", device_get_name);
  find("cuDeviceGetUuid", device_get_uuid);
  find("cuDeviceGetAttribute", device_get_attribute);
  find("cuDeviceGetPCIBusId", device_get_pci_bus_id);
  find("cuDevicePrimaryCtxRetain", device_primary_ctx_retain);
  find("cuDevicePrimaryCtxRelease", device_primary_ctx_release);

  find("cuCtxGetCurrent", ctx_get_current);
  find("cuCtxSetCurrent", ctx_set_current);
  find("cuCtxPushCurrent", ctx_push_current);
  find("cuCtxPopCurrent", ctx_pop_current);
  find("cuCtxGetDevice", ctx_get_device);
  find("cuCtxSynchronize", ctx_synchronize);

  find("cuMemAlloc", mem_alloc);
  find("cuMemFree", mem_free);
  find("cuMemAllocAsync", mem_alloc_async);
  find("cuMemFreeAsync", mem_free_async);
  find("cuMemGetInfo", mem_get_info);
  find("cuMemHostAlloc", mem_host_alloc);
  find("cuMemFreeHost", mem_free_host);
  find("cuMemHostGetDevicePointer", mem_host_get_device_pointer);
  find("cuMemcpyAsync", memcpy_async);
  find("cuMemcpyHtoDAsync", memcpy_htod_async);
  find("cuMemcpyDtoHAsync", memcpy_dtoh_async);
  find("cuMemcpy3DAsync", memcpy_3d_async);
  find("cuMemsetD8Async", memset_d8_async);
  find("cuPointerGetAttributes", pointer_get_attributes);

  find("cuMemGetAllocationGranularity", mem_get_allocation_granularity);
  find("cuMemCreate", mem_create);
  find("cuMemRelease", mem_release);
  find("cuMemExportToShareableHandle", mem_export_to_shareable_handle);
  find("cuMemImportFromShareableHandle", mem_import_from_shareable_handle);
  find("cuMemAddressReserve", mem_address_reserve);
  find("cuMemAddressFree", mem_address_free);
  find("cuMemMap", mem_map);
  find("cuMemUnmap", mem_unmap);
  find("cuMemSetAccess", mem_set_access);

  find("cuStreamCreate", stream_create);
  find("cuStreamDestroy", stream_destroy);
  find("cuStreamQuery", stream_query);
  find("cuStreamSynchronize", stream_synchronize);
  find("cuStreamWaitEvent", stream_wait_event);
  find.look("cuStreamGetId", stream_get_id);
  find("cuStreamIsCapturing", stream_is_capturing);
  find("cuStreamBeginCapture", stream_begin_capture);
  find("cuStreamEndCapture", stream_end_capture);
  find("cuThreadExchangeStreamCaptureMode", thread_exchange_stream_capture_mode);
  find("cuStreamWaitValue32", stream_wait_value32);
  find("cuStreamWriteValue32", stream_write_value32);

  find("cuEventCreate", event_create);
  find("cuEventDestroy", event_destroy);
  find("cuEventRecord", event_record);
  find("cuEventQuery", event_query);
  find("cuEventElapsedTime", event_elapsed_time);

  find("cuGraphInstantiateWithFlags", graph_instantiate);
  find("cuGraphLaunch", graph_launch);
  find("cuGraphExecDestroy", graph_exec_destroy);
  find("cuGraphDestroy", graph_destroy);

  find("cuModuleLoadData", module_load_data);
  find("cuModuleUnload", module_unload);
  find("cuModuleGetFunction", module_get_function);
  find("cuFuncGetAttribute", func_get_attribute);
  find("cuOccupancyMaxActiveBlocksPerMultiprocessor",
       occupancy_max_active_blocks_per_multiprocessor);
  find("cuLaunchKernelEx", launch_kernel_ex);
  if (!find.missing().empty()) {
    return fmt::format("{} has no {}; update the driver", path_, find.missing());
  }
  return "";
}

std::string Driver::describe(Result result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (get_error_name == nullptr || get_error_name(result, &name) != Result::kSuccess ||
      get_error_string(result, &text) != Result::kSuccess) {
    return fmt::format("error {} of the CUDA driver", static_cast<int>(result));
  }
  return fmt::format("{} ({})", text, name);
}

void throw_failure(const Driver& driver, Result result, std::string_view what) {
  throw DeviceError(fmt::format("cannot {}: {}", what, driver.describe(result)));
}

}  // namespace hocket::cuda
