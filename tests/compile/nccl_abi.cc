// src/engines/nccl/abi.h against NCCL's own header.
#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "engines/nccl/library.h"

namespace ours = hocket::engines::nccl;

template <typename A, typename B>
constexpr bool equal(A ours, B theirs) {
  return static_cast<long long>(ours) == static_cast<long long>(theirs);
}

static_assert(equal(ours::NcclResult::kSuccess, ncclSuccess));
static_assert(equal(ours::NcclResult::kInProgress, ncclInProgress));
static_assert(equal(ours::NcclType::kInt8, ncclInt8));
static_assert(equal(ours::NcclType::kUInt8, ncclUint8));
static_assert(equal(ours::NcclType::kInt32, ncclInt32));
static_assert(equal(ours::NcclType::kUInt32, ncclUint32));
static_assert(equal(ours::NcclType::kInt64, ncclInt64));
static_assert(equal(ours::NcclType::kUInt64, ncclUint64));
static_assert(equal(ours::NcclType::kFloat16, ncclFloat16));
static_assert(equal(ours::NcclType::kBFloat16, ncclBfloat16));
static_assert(equal(ours::NcclType::kFloat32, ncclFloat32));
static_assert(equal(ours::NcclType::kFloat64, ncclFloat64));
static_assert(equal(ours::RedOp::kSum, ncclSum));
static_assert(equal(ours::RedOp::kProduct, ncclProd));
static_assert(equal(ours::RedOp::kMin, ncclMin));
static_assert(equal(ours::RedOp::kMax, ncclMax));
static_assert(equal(ours::RedOp::kAvg, ncclAvg));
static_assert(sizeof(ours::NcclUniqueId) == sizeof(ncclUniqueId));

static_assert(sizeof(ours::CommConfig) <= sizeof(ncclConfig_t));
static_assert(offsetof(ours::CommConfig, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(ours::CommConfig, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(ours::CommConfig, cga_cluster_size) ==
              offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(ours::CommConfig, network) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(ours::CommConfig, share_resources) == offsetof(ncclConfig_t, splitShare));
static_assert(NCCL_CONFIG_UNDEF_INT == ours::CommConfig{}.min_blocks);

// The table's signatures, but for what is ours by name.
using Translate = ncclResult_t(
    const void*, void*, std::size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
static_assert(std::is_same_v<decltype(ncclAllReduce), Translate>);
static_assert(std::is_same_v<decltype(ncclReduceScatter), Translate>);
static_assert(std::is_same_v<ncclComm_t, ours::Comm>);
static_assert(std::is_same_v<cudaStream_t, hocket::cuda::Stream>);
