// Device memory: anonymous pages, or a memfd if it is shared.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "fake.h"
#include "lane.h"

using namespace hocket::cuda;

namespace fake {
namespace {

constexpr std::size_t kUnit = std::size_t{2} << 20;

struct Range {
  std::size_t bytes;
  int device;
};
// Threads of streams may outlive the process's globals: what they use stays.
std::mutex& mutex = *new std::mutex;
std::map<DevicePtr, Range>& ranges = *new std::map<DevicePtr, Range>;  // device memory, by address

void* as_pointer(DevicePtr at) { return reinterpret_cast<void*>(at); }

void note(DevicePtr at, std::size_t bytes, int device) {
  const std::lock_guard lock(mutex);
  ranges[at] = {bytes, device};
}

// FAKE_CUDA_LARGEST: the most bytes that there are in one piece.
Result allocate(DevicePtr* at, std::size_t bytes) {
  if (current_device() < 0) return Result::kInvalidContext;
  const char* largest = std::getenv("FAKE_CUDA_LARGEST");
  if (largest != nullptr && bytes > std::strtoull(largest, nullptr, 10)) {
    return Result::kOutOfMemory;
  }
  if (bytes > std::size_t{1} << 34) return Result::kOutOfMemory;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Result::kOutOfMemory;
  std::memset(memory, 0xcd, bytes);
  *at = reinterpret_cast<DevicePtr>(memory);
  note(*at, bytes, current_device());
  return Result::kSuccess;
}
// FAKE_CUDA_STILL: memory is allocated and freed when all streams have ended, with no launch
// meanwhile, like an H100's driver.
bool is_still() {
  static const bool asked = std::getenv("FAKE_CUDA_STILL") != nullptr;
  return asked;
}
void quiesce_if_asked() {
  if (!is_still()) return;
  const auto held = hold_launches();
  quiesce();
}

Result mem_alloc(DevicePtr* at, std::size_t bytes) {
  if (!outside_captures(__func__)) return Result::kCaptureUnsupported;
  quiesce_if_asked();
  return allocate(at, bytes);
}
Result mem_free_now(DevicePtr at) {
  const std::lock_guard lock(mutex);
  const auto found = ranges.find(at);
  if (found == ranges.end()) return Result::kInvalidValue;
  ::munmap(as_pointer(at), found->second.bytes);
  ranges.erase(found);
  return Result::kSuccess;
}
Result mem_free(DevicePtr at) {
  if (!outside_captures(__func__)) return Result::kCaptureUnsupported;
  is_still() ? quiesce_if_asked() : quiesce();
  return mem_free_now(at);
}
Result mem_alloc_async(DevicePtr* at, std::size_t bytes, Stream) { return allocate(at, bytes); }
Result mem_free_async(DevicePtr at, Stream stream) {
  return enqueue(stream, [at] { mem_free_now(at); });
}
Result mem_get_info(std::size_t* free, std::size_t* total) {
  const char* left = std::getenv("FAKE_CUDA_FREE");
  *total = std::size_t{1} << 34;
  *free = left == nullptr ? *total : std::strtoull(left, nullptr, 10);
  return Result::kSuccess;
}
Result mem_host_alloc(void** at, std::size_t bytes, unsigned) {
  if (!outside_captures(__func__)) return Result::kCaptureUnsupported;
  quiesce_if_asked();
  *at = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *at == nullptr ? Result::kOutOfMemory : Result::kSuccess;
}
Result mem_free_host(void* at) {
  if (!outside_captures(__func__)) return Result::kCaptureUnsupported;
  quiesce_if_asked();
  std::free(at);
  return Result::kSuccess;
}
Result mem_host_get_device_pointer(DevicePtr* at, void* host, unsigned) {
  *at = reinterpret_cast<DevicePtr>(host);
  return Result::kSuccess;
}
Result memcpy_async(DevicePtr to, DevicePtr from, std::size_t bytes, Stream stream) {
  return enqueue(stream, [=] { std::memcpy(as_pointer(to), as_pointer(from), bytes); });
}
Result memcpy_htod_async(DevicePtr to, const void* from, std::size_t bytes, Stream stream) {
  return memcpy_async(to, reinterpret_cast<DevicePtr>(from), bytes, stream);
}
Result memcpy_dtoh_async(void* to, DevicePtr from, std::size_t bytes, Stream stream) {
  return memcpy_async(reinterpret_cast<DevicePtr>(to), from, bytes, stream);
}
Result memcpy_3d_async(const Copy3d* wanted, Stream stream) {
  return enqueue(stream, [copy = *wanted] {
    for (std::size_t z = 0; z < copy.depth; ++z) {
      for (std::size_t y = 0; y < copy.height; ++y) {
        const auto row = [&](const CopySide& side) {
          return as_pointer(side.device + side.x_bytes +
                            ((z + side.z) * side.height + y + side.y) * side.pitch);
        };
        std::memcpy(row(copy.to), row(copy.from), copy.width_bytes);
      }
    }
  });
}
Result memset_d8_async(DevicePtr at, unsigned char value, std::size_t bytes, Stream stream) {
  return enqueue(stream, [=] { std::memset(as_pointer(at), value, bytes); });
}

Result pointer_get_attributes(unsigned count,
                              PointerAttribute* wanted,
                              void** values,
                              DevicePtr at) {
  const std::lock_guard lock(mutex);
  auto found = ranges.upper_bound(at);
  if (found != ranges.begin()) --found;
  const bool is_ours =
      found != ranges.end() && at >= found->first && at < found->first + found->second.bytes;
  for (unsigned i = 0; i < count; ++i) {
    if (wanted[i] == PointerAttribute::kMemoryType) {
      *static_cast<MemoryType*>(values[i]) = is_ours ? MemoryType::kDevice : MemoryType::kNone;
    } else if (wanted[i] == PointerAttribute::kDeviceOrdinal) {
      *static_cast<int*>(values[i]) = is_ours ? found->second.device : -2;
    }
  }
  return Result::kSuccess;
}

// --- Memory that can be shared: a handle is a memfd ---------------------------------------------

Result granularity(std::size_t* unit, const AllocationProperties*, Granularity) {
  *unit = kUnit;
  return Result::kSuccess;
}
// The name tells the device of the memory, in any process.
constexpr const char* kName = "fake_cuda_%d";
int device_of(AllocationHandle handle) {
  char link[64], name[64] = {};
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", static_cast<int>(handle));
  int device = current_device();  // of a file that others made: theirs who import it
  if (::readlink(link, name, sizeof(name) - 1) < 0) return device;
  std::sscanf(name, (std::string("/memfd:") + kName).c_str(), &device);
  return device;
}
Result mem_create(AllocationHandle* handle,
                  std::size_t bytes,
                  const AllocationProperties* wanted,
                  unsigned long long) {
  if (bytes % kUnit != 0) return Result::kInvalidValue;
  char name[64];
  std::snprintf(name, sizeof(name), kName, wanted->location.id);
  const int fd = ::memfd_create(name, MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return Result::kOutOfMemory;
  *handle = static_cast<AllocationHandle>(fd);
  return Result::kSuccess;
}
Result mem_release(AllocationHandle handle) {
  ::close(static_cast<int>(handle));
  return Result::kSuccess;
}
Result mem_export(void* shareable, AllocationHandle handle, HandleType, unsigned long long) {
  *static_cast<int*>(shareable) = ::dup(static_cast<int>(handle));
  return Result::kSuccess;
}
Result mem_import(AllocationHandle* handle, void* shareable, HandleType) {
  const int fd = ::dup(static_cast<int>(reinterpret_cast<std::intptr_t>(shareable)));
  *handle = static_cast<AllocationHandle>(fd);
  return fd < 0 ? Result::kInvalidValue : Result::kSuccess;
}
Result mem_address_reserve(
    DevicePtr* at, std::size_t bytes, std::size_t, DevicePtr, unsigned long long) {
  void* memory = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *at = reinterpret_cast<DevicePtr>(memory);
  return memory == MAP_FAILED ? Result::kOutOfMemory : Result::kSuccess;
}
Result mem_address_free(DevicePtr at, std::size_t bytes) {
  ::munmap(as_pointer(at), bytes);
  return Result::kSuccess;
}
Result mem_map(
    DevicePtr at, std::size_t bytes, std::size_t, AllocationHandle handle, unsigned long long) {
  void* memory = ::mmap(as_pointer(at),
                        bytes,
                        PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED,
                        static_cast<int>(handle),
                        0);
  if (memory == MAP_FAILED) return Result::kInvalidValue;
  note(at, bytes, device_of(handle));
  return Result::kSuccess;
}
Result mem_unmap(DevicePtr at, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  ranges.erase(at);
  ::mmap(as_pointer(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return Result::kSuccess;
}
Result mem_set_access(DevicePtr, std::size_t, const AccessDescription*, std::size_t) {
  return Result::kSuccess;
}

}  // namespace

std::vector<Entry> memory_functions() {
  return {entry("cuMemAlloc", mem_alloc),
          entry("cuMemFree", mem_free),
          entry("cuMemAllocAsync", mem_alloc_async),
          entry("cuMemFreeAsync", mem_free_async),
          entry("cuMemGetInfo", mem_get_info),
          entry("cuMemHostAlloc", mem_host_alloc),
          entry("cuMemFreeHost", mem_free_host),
          entry("cuMemHostGetDevicePointer", mem_host_get_device_pointer),
          entry("cuMemcpyAsync", memcpy_async),
          entry("cuMemcpyHtoDAsync", memcpy_htod_async),
          entry("cuMemcpyDtoHAsync", memcpy_dtoh_async),
          entry("cuMemcpy3DAsync", memcpy_3d_async),
          entry("cuMemsetD8Async", memset_d8_async),
          entry("cuPointerGetAttributes", pointer_get_attributes),
          entry("cuMemGetAllocationGranularity", granularity),
          entry("cuMemCreate", mem_create),
          entry("cuMemRelease", mem_release),
          entry("cuMemExportToShareableHandle", mem_export),
          entry("cuMemImportFromShareableHandle", mem_import),
          entry("cuMemAddressReserve", mem_address_reserve),
          entry("cuMemAddressFree", mem_address_free),
          entry("cuMemMap", mem_map),
          entry("cuMemUnmap", mem_unmap),
          entry("cuMemSetAccess", mem_set_access)};
}

}  // namespace fake
