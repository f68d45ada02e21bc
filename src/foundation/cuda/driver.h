// The CUDA driver, loaded at run time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "foundation/cuda/abi.h"

namespace hocket::cuda {

struct FoundDriver;

// A resource: the loaded library, and a table of its functions. A function's name is that of the
// driver without "cu". The object does not change after its creation, so any thread may use it. All
// objects that use it keep it alive. The driver's multicast functions are missing on purpose:
// hocket never uses NVLink multicast.
class Driver {
 public:
  // Loads and initializes the driver. It does not throw if the driver is missing; `why_not` then
  // has the reason.
  static FoundDriver find();
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  int version() const noexcept { return version_; }  // 13000 is CUDA 13.0
  int devices() const noexcept { return devices_; }
  const std::string& path() const noexcept { return path_; }
  // Formats a result for people, such as "out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
  std::string describe(Result result) const;

  Result (*init)(unsigned flags) = nullptr;
  Result (*driver_get_version)(int* version) = nullptr;
  Result (*get_error_name)(Result, const char** text) = nullptr;
  Result (*get_error_string)(Result, const char** text) = nullptr;

  Result (*device_get_count)(int* count) = nullptr;
  Result (*device_get)(int* device, int ordinal) = nullptr;
  Result (*device_get_name)(char* name, int length, int device) = nullptr;
  Result (*device_get_uuid)(Uuid* uuid, int device) = nullptr;
  Result (*device_get_attribute)(int* value, DeviceAttribute, int device) = nullptr;
  Result (*device_get_pci_bus_id)(char* text, int length, int device) = nullptr;
  Result (*device_primary_ctx_retain)(Context*, int device) = nullptr;
  Result (*device_primary_ctx_release)(int device) = nullptr;

  Result (*ctx_get_current)(Context*) = nullptr;
  Result (*ctx_set_current)(Context) = nullptr;
  Result (*ctx_push_current)(Context) = nullptr;
  Result (*ctx_pop_current)(Context*) = nullptr;
  Result (*ctx_get_device)(int* device) = nullptr;
  Result (*ctx_synchronize)() = nullptr;

  Result (*mem_alloc)(DevicePtr*, std::size_t bytes) = nullptr;
  Result (*mem_free)(DevicePtr) = nullptr;
  Result (*mem_alloc_async)(DevicePtr*, std::size_t bytes, Stream) = nullptr;
  Result (*mem_free_async)(DevicePtr, Stream) = nullptr;
  Result (*mem_get_info)(std::size_t* free, std::size_t* total) = nullptr;
  Result (*mem_host_alloc)(void**, std::size_t bytes, unsigned flags) = nullptr;
  Result (*mem_free_host)(void*) = nullptr;
  Result (*mem_host_get_device_pointer)(DevicePtr*, void*, unsigned flags) = nullptr;
  Result (*memcpy_async)(DevicePtr to, DevicePtr from, std::size_t, Stream) = nullptr;
  Result (*memcpy_htod_async)(DevicePtr to, const void* from, std::size_t, Stream) = nullptr;
  Result (*memcpy_dtoh_async)(void* to, DevicePtr from, std::size_t, Stream) = nullptr;
  Result (*memcpy_3d_async)(const Copy3d*, Stream) = nullptr;
  Result (*memset_d8_async)(DevicePtr, unsigned char, std::size_t, Stream) = nullptr;
  Result (*pointer_get_attributes)(unsigned count,
                                   PointerAttribute*,
                                   void** values,
                                   DevicePtr) = nullptr;

  Result (*mem_get_allocation_granularity)(std::size_t*,
                                           const AllocationProperties*,
                                           Granularity) = nullptr;
  Result (*mem_create)(AllocationHandle*,
                       std::size_t,
                       const AllocationProperties*,
                       unsigned long long flags) = nullptr;
  Result (*mem_release)(AllocationHandle) = nullptr;
  Result (*mem_export_to_shareable_handle)(void* shareable,
                                           AllocationHandle,
                                           HandleType,
                                           unsigned long long flags) = nullptr;
  Result (*mem_import_from_shareable_handle)(AllocationHandle*,
                                             void* shareable,
                                             HandleType) = nullptr;
  Result (*mem_address_reserve)(DevicePtr*,
                                std::size_t,
                                std::size_t alignment,
                                DevicePtr hint,
                                unsigned long long flags) = nullptr;
  Result (*mem_address_free)(DevicePtr, std::size_t) = nullptr;
  Result (*mem_map)(DevicePtr,
                    std::size_t,
                    std::size_t offset,
                    AllocationHandle,
                    unsigned long long flags) = nullptr;
  Result (*mem_unmap)(DevicePtr, std::size_t) = nullptr;
  Result (*mem_set_access)(DevicePtr,
                           std::size_t,
                           const AccessDescription*,
                           std::size_t count) = nullptr;

  Result (*stream_create)(Stream*, unsigned flags) = nullptr;
  Result (*stream_destroy)(Stream) = nullptr;
  Result (*stream_query)(Stream) = nullptr;
  Result (*stream_synchronize)(Stream) = nullptr;
  Result (*stream_wait_event)(Stream, Event, unsigned flags) = nullptr;
  Result (*stream_get_id)(Stream, unsigned long long* id) = nullptr;  // null: the driver lacks it
  Result (*stream_is_capturing)(Stream, CaptureStatus*) = nullptr;
  Result (*stream_begin_capture)(Stream, CaptureMode) = nullptr;
  Result (*stream_end_capture)(Stream, Graph*) = nullptr;
  Result (*thread_exchange_stream_capture_mode)(CaptureMode*) = nullptr;
  Result (*stream_wait_value32)(Stream, DevicePtr, std::uint32_t, unsigned flags) = nullptr;
  Result (*stream_write_value32)(Stream, DevicePtr, std::uint32_t, unsigned flags) = nullptr;

  Result (*event_create)(Event*, unsigned flags) = nullptr;
  Result (*event_destroy)(Event) = nullptr;
  Result (*event_record)(Event, Stream) = nullptr;
  Result (*event_query)(Event) = nullptr;
  Result (*event_elapsed_time)(float* milliseconds, Event start, Event end) = nullptr;

  Result (*graph_instantiate)(GraphExec*, Graph, unsigned long long flags) = nullptr;
  Result (*graph_launch)(GraphExec, Stream) = nullptr;
  Result (*graph_exec_destroy)(GraphExec) = nullptr;
  Result (*graph_destroy)(Graph) = nullptr;

  Result (*module_load_data)(Module*, const void* image) = nullptr;
  Result (*module_unload)(Module) = nullptr;
  Result (*module_get_function)(Function*, Module, const char* name) = nullptr;
  Result (*func_get_attribute)(int* value, FunctionAttribute, Function) = nullptr;
  Result (*occupancy_max_active_blocks_per_multiprocessor)(int* blocks,
                                                           Function,
                                                           int block_size,
                                                           std::size_t dynamic_shared) = nullptr;
  Result (*launch_kernel_ex)(const LaunchConfig*,
                             Function,
                             void** parameters,
                             void** extra) = nullptr;

 private:
  Driver() = default;
  std::string load();  // returns the reason of a failure, or ""
  std::string fill();

  void* library_ = nullptr;
  std::string path_;
  int version_ = 0;
  int devices_ = 0;
};

// The result of `Driver::find`: a driver, or the reason why there is none. A value.
struct FoundDriver {
  std::shared_ptr<const Driver> driver;
  std::string why_not;
};

// Throws DeviceError with the text "cannot WHAT: out of memory (CUDA_ERROR_OUT_OF_MEMORY)". `check`
// calls it only for a failure, so a success costs one comparison.
[[noreturn]] void throw_failure(const Driver& driver, Result result, std::string_view what);
inline void check(const Driver& driver, Result result, std::string_view what) {
  if (result != Result::kSuccess) [[unlikely]]
    throw_failure(driver, result, what);
}

}  // namespace hocket::cuda
