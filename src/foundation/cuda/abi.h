// The part of the CUDA driver's binary interface that hocket uses, so that a build needs no
// toolkit. Layouts and values are those of driver version 12.0. The names of members and
// enumerators are hocket's own, because only the layout matters. tests/compile compares this file
// with cuda.h if that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

// The driver's opaque types. They have the driver's names, because the CUDA runtime uses them too
// (cudaStream_t is a CUstream_st*).
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace hocket::cuda {

using Context = CUctx_st*;
using Stream = CUstream_st*;
using Event = CUevent_st*;
using Module = CUmod_st*;
using Function = CUfunc_st*;
using Graph = CUgraph_st*;
using GraphExec = CUgraphExec_st*;
using DevicePtr = unsigned long long;
using AllocationHandle = unsigned long long;

enum class Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kPeerAccessAlreadyEnabled = 704,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureImplicit = 906,
};

enum class DeviceAttribute : int {
  kMultiprocessors = 16,
  kUnifiedAddressing = 41,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kVmm = 102,
  kPosixFdHandles = 103,
  kMps = 133,  // from CUDA 12.2 on
};

enum class PointerAttribute : int {
  kMemoryType = 2,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kRangeStart = 11,
  kRangeSize = 12,
};
enum class MemoryType : unsigned { kNone = 0, kHost = 1, kDevice = 2, kArray = 3, kUnified = 4 };

// --- Flags. The name of each begins with the function that takes it ------------------------------

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostAllocPortable = 1;
inline constexpr unsigned kHostAllocDeviceMap = 2;
inline constexpr unsigned kStreamWaitGreaterOrEqual = 0;  // modulo 2^32, by signed difference
inline constexpr unsigned kStreamWaitEqual = 1;
enum class CaptureStatus : int { kNone = 0, kActive = 1, kInvalidated = 2 };
enum class CaptureMode : int { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

// --- Physical allocations -----------------------------------------------------------------------

enum class AllocationType : int { kPinned = 1 };
enum class HandleType : int { kNone = 0, kPosixFd = 1 };
enum class LocationType : int { kDevice = 1 };
enum class Access : int { kNone = 0, kRead = 1, kReadWrite = 3 };
enum class Granularity : int { kMinimum = 0, kRecommended = 1 };

struct Location {
  LocationType type = LocationType::kDevice;
  int id = 0;
};
struct AllocationProperties {
  AllocationType type = AllocationType::kPinned;
  HandleType handles = HandleType::kPosixFd;
  Location location;
  void* unused_on_this_system = nullptr;
  struct {
    unsigned char compression = 0;
    unsigned char rdma = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
  } flags;
};
struct AccessDescription {
  Location location;
  Access flags = Access::kReadWrite;
};

// --- Copies -------------------------------------------------------------------------------------

// The source or the destination of a copy of rows and planes.
struct CopySide {
  std::size_t x_bytes = 0, y = 0, z = 0, level = 0;
  MemoryType type = MemoryType::kUnified;  // kUnified or kDevice: the address is in `device`
  const void* host = nullptr;
  DevicePtr device = 0;
  void* array = nullptr;
  void* reserved = nullptr;
  std::size_t pitch = 0;   // bytes between two rows
  std::size_t height = 0;  // rows between two planes
};
struct Copy3d {
  CopySide from, to;
  std::size_t width_bytes = 0, height = 0, depth = 0;
};

// --- Launches -----------------------------------------------------------------------------------

enum class LaunchAttributeId : int { kProgrammaticStreamSerialization = 6 };
struct alignas(8) LaunchAttribute {
  LaunchAttributeId id{};
  char unused[4] = {};
  union {
    int allowed = 0;
    char bytes[64];
  };
};
static_assert(sizeof(LaunchAttribute) == 72);
struct LaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  Stream stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
enum class FunctionAttribute : int {
  kMaxThreadsPerBlock = 0,
  kRegisters = 4,
  kPtxVersion = 5,  // the architecture for which it was compiled, such as 90
  kMaxDynamicSharedBytes = 8,
};

struct Uuid {
  unsigned char bytes[16];
};

}  // namespace hocket::cuda
