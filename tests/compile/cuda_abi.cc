// src/foundation/cuda/abi.h against the toolkit's own header.
#include <cuda.h>

#include <cstddef>

#include "foundation/cuda/abi.h"

namespace ours = hocket::cuda;

template <typename A, typename B>
constexpr bool equal(A ours, B theirs) {
  return static_cast<long long>(ours) == static_cast<long long>(theirs);
}

static_assert(equal(ours::Result::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY));
static_assert(equal(ours::Result::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED));
static_assert(equal(ours::Result::kDeinitialized, CUDA_ERROR_DEINITIALIZED));
static_assert(equal(ours::Result::kNoDevice, CUDA_ERROR_NO_DEVICE));
static_assert(equal(ours::Result::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE));
static_assert(equal(ours::Result::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT));
static_assert(equal(ours::Result::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE));
static_assert(equal(ours::Result::kNotFound, CUDA_ERROR_NOT_FOUND));
static_assert(equal(ours::Result::kNotReady, CUDA_ERROR_NOT_READY));
static_assert(equal(ours::Result::kPeerAccessAlreadyEnabled,
                    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED));
static_assert(equal(ours::Result::kNotSupported, CUDA_ERROR_NOT_SUPPORTED));
static_assert(equal(ours::Result::kCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
static_assert(equal(ours::Result::kCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT));

static_assert(equal(ours::DeviceAttribute::kMultiprocessors,
                    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
static_assert(equal(ours::DeviceAttribute::kUnifiedAddressing,
                    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING));
static_assert(equal(ours::DeviceAttribute::kComputeMajor,
                    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
static_assert(equal(ours::DeviceAttribute::kComputeMinor,
                    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
static_assert(equal(ours::DeviceAttribute::kVmm,
                    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
static_assert(equal(ours::DeviceAttribute::kPosixFdHandles,
                    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED));
static_assert(equal(ours::DeviceAttribute::kMps, CU_DEVICE_ATTRIBUTE_MPS_ENABLED));

static_assert(equal(ours::PointerAttribute::kMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE));
static_assert(equal(ours::PointerAttribute::kIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED));
static_assert(equal(ours::PointerAttribute::kDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL));
static_assert(equal(ours::PointerAttribute::kRangeStart, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR));
static_assert(equal(ours::PointerAttribute::kRangeSize, CU_POINTER_ATTRIBUTE_RANGE_SIZE));
static_assert(equal(ours::MemoryType::kDevice, CU_MEMORYTYPE_DEVICE));
static_assert(sizeof(ours::MemoryType) == sizeof(CUmemorytype));

static_assert(ours::kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(ours::kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(ours::kHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(ours::kHostAllocDeviceMap == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(ours::kStreamWaitGreaterOrEqual == CU_STREAM_WAIT_VALUE_GEQ);
static_assert(ours::kStreamWaitEqual == CU_STREAM_WAIT_VALUE_EQ);
static_assert(equal(ours::CaptureStatus::kActive, CU_STREAM_CAPTURE_STATUS_ACTIVE));
static_assert(equal(ours::CaptureMode::kRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED));

static_assert(equal(ours::AllocationType::kPinned, CU_MEM_ALLOCATION_TYPE_PINNED));
static_assert(equal(ours::HandleType::kPosixFd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
static_assert(equal(ours::LocationType::kDevice, CU_MEM_LOCATION_TYPE_DEVICE));
static_assert(equal(ours::Access::kReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
static_assert(equal(ours::Granularity::kMinimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
static_assert(sizeof(ours::AllocationProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(ours::AllocationProperties, location) ==
              offsetof(CUmemAllocationProp, location));
static_assert(offsetof(ours::AllocationProperties, flags) ==
              offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(ours::AccessDescription) == sizeof(CUmemAccessDesc));
static_assert(sizeof(ours::AllocationHandle) == sizeof(CUmemGenericAllocationHandle));
static_assert(sizeof(ours::DevicePtr) == sizeof(CUdeviceptr));

static_assert(sizeof(ours::Copy3d) == sizeof(CUDA_MEMCPY3D));
static_assert(offsetof(ours::Copy3d, from.device) == offsetof(CUDA_MEMCPY3D, srcDevice));
static_assert(offsetof(ours::Copy3d, from.height) == offsetof(CUDA_MEMCPY3D, srcHeight));
static_assert(offsetof(ours::Copy3d, to.device) == offsetof(CUDA_MEMCPY3D, dstDevice));
static_assert(offsetof(ours::Copy3d, to.height) == offsetof(CUDA_MEMCPY3D, dstHeight));
static_assert(offsetof(ours::Copy3d, width_bytes) == offsetof(CUDA_MEMCPY3D, WidthInBytes));
static_assert(offsetof(ours::Copy3d, depth) == offsetof(CUDA_MEMCPY3D, Depth));
static_assert(sizeof(ours::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(sizeof(ours::LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(ours::LaunchAttribute, allowed) == offsetof(CUlaunchAttribute, value));
static_assert(equal(ours::LaunchAttributeId::kProgrammaticStreamSerialization,
                    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
static_assert(offsetof(ours::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(ours::LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(equal(ours::FunctionAttribute::kRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS));
static_assert(equal(ours::FunctionAttribute::kPtxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION));
static_assert(equal(ours::FunctionAttribute::kMaxDynamicSharedBytes,
                    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
static_assert(sizeof(ours::Uuid) == sizeof(CUuuid));
